"""Locations of tables and files: how they are written, the session they belong to, their store."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote

from obstore.store import MemoryStore

from lancelake.caches import MOST_BYTES, Caches
from lancelake.clock import Clock, Ids, SystemClock, SystemIds
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.storage.instrumented import ObservedStore, observers_of
from lancelake.storage.local import LocalStore
from lancelake.storage.obstore_store import Abilities, ObstoreStore, abilities, cloud_store
from lancelake.storage.options import DEFAULT_RETRY, RetryingStore, ensure_known, retry_policy
from lancelake.storage.store import ObjectStore, StorePlace, ensure_plain, real_roots

if TYPE_CHECKING:
    from lancelake.engine.port import Engine
    from lancelake.events import CommitStep
    from lancelake.storage.options import RetryPolicy

CACHE_BYTES = "LANCELAKE_CACHE_BYTES"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Session:
    """Clock, ids, engine, caches, limits of requests and steps after commits of its tables.

    The location of a table knows its session, and what runs on the table asks there. Programs that
    make no session use the default one. Tests replace what they need to decide.
    """

    clock: Clock = SystemClock()  # noqa: RUF009  # has no state
    ids: Ids = SystemIds()  # noqa: RUF009  # has no state

    caches: Caches = field(default_factory=Caches)
    """What was read of the tables; one bound for each kind of content, and one for all."""

    stores: Callable[[StorePlace], ObjectStore] | None = None
    """Opens the store of a place; by default by its scheme and storage options."""

    retry: RetryPolicy | None = None
    """How requests to stores are repeated, unless storage options say otherwise."""

    engine: Engine | None = None
    """Runs the tasks of operations; by default threads of this process."""

    after: tuple[CommitStep, ...] | None = None
    """Steps that follow each commit, instead of the installed ones."""

    @contextmanager
    def as_default(self) -> Iterator[Session]:
        """Let locations that are made without a session belong to this one, in all threads."""
        global _default  # noqa: PLW0603  # a process has one default
        before, _default = _default, self
        try:
            yield self
        finally:
            _default = before


def default_session() -> Session:
    """Return the session of programs that make none."""
    return _default


def bound_of_caches(environment: Mapping[str, str]) -> int:
    """Return the bound of all caches together that a process was started with."""
    text = environment.get(CACHE_BYTES)
    if text is None:
        return MOST_BYTES
    if not (text.isascii() and text.isdigit()):
        problem = f"{CACHE_BYTES} must be a number of bytes, not {text!r}"
        raise InvalidRequestError(problem)
    return int(text)


_default = Session(caches=Caches(most_bytes=bound_of_caches(os.environ)))


SCHEMES = (
    "file",
    "file-object-store",
    "memory",
    "shared-memory",
    "s3",
    "s3+ddb",
    "gs",
    "az",
    "abfss",
)
LOCAL = ("file", "file-object-store")
_ALIASES = {
    "s3a": "s3",
    "s3n": "s3",
    "gcs": "gs",
    "abfs": "abfss",
    "wasb": "abfss",
    "wasbs": "abfss",
}
# Stores that only Hadoop's classes reach.
_HADOOP = frozenset(
    {"hdfs", "viewfs", "webhdfs", "swebhdfs", "har", "ofs", "o3fs", "maprfs", "alluxio"}
)
# As in RFC 3986, so that `s3:/bucket` and `dbfs:/t` are not names of local folders.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_PASSWORD = re.compile(r"[^/@:?#]*:.*@", re.DOTALL)
_BLOB_HOST = re.compile(r"\A([^/@]+@[^/]+)\.blob\.core\.windows\.net(?=/|\Z)")


def is_uri(text: str) -> bool:
    """Whether a text starts with a scheme, supported or not; other texts are local paths."""
    return _SCHEME.fullmatch(text) is not None


def taken_apart(text: str) -> tuple[str, str] | None:
    """Return the scheme of a URI and what follows its `//`; None for a local path.

    Aliases are replaced. Raises for a scheme that is not supported, with advice; errors quote
    neither passwords nor queries, which may be signatures.
    """
    match = _SCHEME.fullmatch(text)
    if match is None:
        return None
    name, rest = match[1].lower(), match[2]
    scheme = _ALIASES.get(name, name)
    if scheme not in LOCAL and _PASSWORD.match(rest.lstrip("/")):
        raise InvalidRequestError(
            f"a {name} URI with a user name and a password is not supported",
            action="Omit them, and pass the credentials as storage options.",
        )
    text = text.partition("?")[0]
    if scheme not in SCHEMES:
        raise _refused(text, name, rest.partition("?")[0])
    if not rest.startswith("//"):
        if scheme in LOCAL and rest.startswith("/"):
            return scheme, rest
        path = rest.partition("?")[0].lstrip("/")
        uri = "file:///absolute/path" if scheme in LOCAL else f"{name}://{path}"
        problem = f"{text!r} has no // after the scheme"
        raise InvalidRequestError(problem, action=f"Write {uri}, or ./{text} for a local path.")
    return scheme, _BLOB_HOST.sub(r"\1.dfs.core.windows.net", rest[2:])


def _refused(text: str, name: str, rest: str) -> InvalidRequestError | UnsupportedError:
    path = f"/{rest.replace(chr(92), '/').lstrip('/')}"
    if name == "dbfs":
        is_volume = path.startswith("/Volumes/")
        return InvalidRequestError(
            f"{text!r} is a path of Databricks, where it is also a local path",
            action=f"Write {path}." if is_volume else f"Write /dbfs{path}, or use /Volumes/...",
        )
    if name in _HADOOP:
        return UnsupportedError(
            f"{text!r} is in a store of Hadoop, which is not supported: tasks run in Python "
            "processes, which cannot reach Hadoop's conditional create, and commits without it "
            "are not safe",
            action="Store the table in S3, Google Cloud Storage, Azure or a local file system.",
        )
    if len(name) == 1 and rest.startswith(("\\", "/")):
        return InvalidRequestError(
            f"{text!r} is a path of Windows, which is not supported",
            action=f"In WSL, write /mnt/{name}{path}.",
        )
    return InvalidRequestError(
        f"{text!r} has the unknown scheme {name!r}; known schemes: {', '.join(SCHEMES)}",
        action=f"For a local path, write ./{text}.",
    )


_MEMORY = ("memory", "shared-memory")
# Any other character could end the host of a URL built from the name, and so choose the host.
_AUTHORITY = re.compile(r"[\w.$:-]+(?:@[\w.:-]+)?", re.ASCII)
# Characters that are not encoded in the path of a URI.
_UNQUOTED = "/!$&'()*+,;=:@~"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Location:
    """Root of a table or base path: a URI and its storage options.

    `uri` is an absolute path, taken literally, on local disk; elsewhere `scheme://authority/key`
    with the key percent-encoded where needed. It has no trailing slash.

    `confine_to` are the only roots, as URIs, that the table may access; None means no limit.
    """

    uri: str
    options: tuple[tuple[str, str], ...] = ()
    confine_to: tuple[str, ...] | None = None

    session: Session = field(default_factory=default_session, compare=False)
    """The session that the location belongs to; in other processes it is their default."""

    def __reduce__(self) -> tuple[Callable[..., Location], tuple[object, ...]]:
        return _unpickled, (self.uri, self.options, self.confine_to)

    @property
    def store(self) -> ObjectStore:
        """The store below this root."""
        return open_store(self, self.session)

    @staticmethod
    def parse(
        uri: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        *,
        confine_to: Iterable[str | os.PathLike[str]] | None = None,
        session: Session | None = None,
    ) -> Location:
        """Parse a path or URI of a user, never one from the content of a table.

        With `confine_to` the table can only access itself and locations below these roots. Without
        a session, it belongs to the default one.
        """
        place = Location._parse(uri, storage_options)
        if session is not None:
            place = replace(place, session=session)
        if confine_to is None:
            return place
        if isinstance(confine_to, str | os.PathLike):
            raise InvalidRequestError("confine_to must be a list of paths or URIs")
        roots = (Location._parse(root, None).uri for root in confine_to)
        return replace(place, confine_to=tuple(dict.fromkeys((place.uri, *roots))))

    @staticmethod
    def _parse(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None) -> Location:
        text = os.fspath(uri)
        options = dict(storage_options or {})
        parts = taken_apart(text)
        if parts is None:
            return Location(uri=_local(text), options=_pairs(options))
        scheme, rest = parts
        # Errors quote the text, and a query may be a signature.
        text = text.partition("?")[0]
        rest, _, _ = rest.partition("#")
        rest, _, query = rest.partition("?")
        if scheme in LOCAL:
            return Location(uri=_local(_file_path(rest, text)), options=_pairs(options))
        if scheme == "s3+ddb":
            options = {**dict(parse_qsl(query)), **options}
        authority, _, key = rest.partition("/")
        if not authority and scheme not in _MEMORY:
            raise InvalidRequestError(f"{text!r} has no bucket or container")
        if authority and _AUTHORITY.fullmatch(authority) is None:
            raise InvalidRequestError(f"{authority!r} is not a valid bucket or container name")
        return Location(
            uri=_joined(f"{scheme}://{authority}", _clean(key, text)), options=_pairs(options)
        )

    def child(self, relative: str) -> Location:
        """Return the location at a relative path, taken literally, below this one."""
        if not relative:
            return self
        ensure_plain(relative)
        if self.scheme == "file":
            return replace(self, uri=f"{self.uri.rstrip('/')}/{relative}")
        return replace(self, uri=_joined(self.uri, relative))

    def beside(self, uri: str | os.PathLike[str]) -> Location:
        """Parse a location of the same user, with the same options and confinement."""
        return Location.parse(
            uri, self.storage_options, confine_to=self.confine_to, session=self.session
        )

    @property
    def scheme(self) -> str:
        """Kind of store: `file`, `memory`, `s3`, `s3+ddb`, `gs`, `az` or `abfss`."""
        scheme, separator, _ = self.uri.partition("://")
        if not separator:
            return "file"
        return "memory" if scheme in _MEMORY else scheme

    @property
    def authority(self) -> str:
        """Bucket or container, or the name of a memory store; empty on local disk."""
        return self.uri.partition("://")[2].partition("/")[0]

    @property
    def key(self) -> str:
        """Path within the bucket, decoded; the absolute path on local disk."""
        if self.scheme == "file":
            return self.uri
        return unquote(self.uri.partition("://")[2].partition("/")[2])

    @property
    def storage_options(self) -> dict[str, str]:
        """The options as given."""
        return dict(self.options)

    def __repr__(self) -> str:
        masked = {key: "***" for key, _ in self.options}
        return f"Location(uri={self.uri!r}, options={masked!r})"

    def __str__(self) -> str:
        return self.uri


def _unpickled(
    uri: str, options: tuple[tuple[str, str], ...], confine_to: tuple[str, ...] | None
) -> Location:
    return Location(uri=uri, options=options, confine_to=confine_to)


def _local(path: str) -> str:
    if not path:
        raise InvalidRequestError("the URI is empty")
    if "\0" in path:
        raise InvalidRequestError(f"not a path: {path!r}")
    # abspath keeps two leading slashes, which mean one here.
    return "/" + os.path.abspath(os.path.expanduser(path)).lstrip("/")  # noqa: PTH100, PTH111  # `Path` keeps `..`


def _file_path(rest: str, text: str) -> str:
    host, slash, path = rest.partition("/")
    if host not in {"", "localhost"} or not slash:
        raise InvalidRequestError(f"{text!r} is not a local path such as file:///absolute/path")
    return "/" + _decoded(path, text)


def _decoded(path: str, text: str) -> str:
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"{text!r} is not UTF-8 when decoded") from error


def _clean(key: str, text: str) -> str:
    """Decode a key and resolve its `.` and `..` segments as URIs do."""
    names: list[str] = []
    for name in _decoded(key, text).rstrip("/").split("/"):
        if name == "..":
            if not names:
                raise InvalidRequestError(f"{text!r} leaves its bucket")
            names.pop()
        elif name != ".":
            names.append(name)
    cleaned = "/".join(names)
    if cleaned:
        ensure_plain(cleaned)
    return cleaned


def _joined(uri: str, relative: str) -> str:
    return f"{uri}/{quote(relative, safe=_UNQUOTED)}" if relative else uri


def _pairs(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    for key, value in options.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidRequestError(f"storage option {key!r} must be text", option=str(key))
    if options:
        ensure_known(options)
    return tuple(sorted(options.items()))


_ANY_SCHEME = "memory://"

_clients: dict[str, MemoryStore] = {}


def memory_store(place: StorePlace) -> ObstoreStore:
    """Return the store of this name, which all callers in the process share."""
    client = _clients.setdefault(place.authority, MemoryStore())
    return ObstoreStore(client, prefix=place.key, abilities=Abilities())


def in_scope(uri: str, scope: str) -> str:
    """Return the URI of a memory store of the same name that only one scope uses."""
    name, separator, key = uri.removeprefix(_ANY_SCHEME).partition("/")
    return f"{_ANY_SCHEME}{name or 'memory'}@{scope}{separator}{key}"


def scope_of(place: StorePlace) -> str | None:
    """Return the scope of a memory store, or None for other stores."""
    return place.authority.partition("@")[2] or None if place.scheme == "memory" else None


def forget_scope(scope: str) -> None:
    """Free the stores of a scope."""
    for name in [name for name in _clients if name.endswith(f"@{scope}")]:
        del _clients[name]


def open_store(place: StorePlace, session: Session) -> ObjectStore:
    """Return the store at a place; repeated calls are cheap.

    Its calls are counted if the running operation has an `IoAccount`, and if the table at this
    place has an `IoMeter`. The session's limits of retries are overridden by the options
    `client_max_retries` and `client_retry_timeout`.
    """
    store = _open(place, session) if session.stores is None else session.stores(place)
    observers = observers_of(place)
    return ObservedStore(store, observers) if observers else store


def _open(place: StorePlace, session: Session) -> ObjectStore:
    match place.scheme:
        case "file":
            roots = real_roots(place.confine_to)
            uri = place.uri
            return LocalStore(uri) if roots is None else LocalStore(uri, within=roots)
        case "memory":
            return memory_store(place)
        case _:
            return RetryingStore(
                cloud_store(place, session.caches),
                policy=retry_policy(place.storage_options, session.retry or DEFAULT_RETRY),
                clock=session.clock,
                ids=session.ids,
                lists_in_order=abilities(place).lists_in_order,
            )
