"""Location of a table: its URI, storage options and confinement."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, quote, unquote

from lancelake.errors import InvalidRequestError
from lancelake.storage.confined import ensure_plain
from lancelake.storage.options import ensure_known

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
_ALIASES = {"s3a": "s3"}
_MEMORY = ("memory", "shared-memory")
_LOCAL = ("file", "file-object-store")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_FILE_WITHOUT_HOST = re.compile(r"file:(?=/(?!/))")
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

    @staticmethod
    def parse(
        uri: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        *,
        confine_to: Iterable[str | os.PathLike[str]] | None = None,
    ) -> Location:
        """Parse a path or URI of a user, never one from the content of a table.

        With `confine_to` the table can only access itself and locations below these roots.
        """
        place = Location._parse(uri, storage_options)
        if confine_to is None:
            return place
        if isinstance(confine_to, str | os.PathLike):
            raise InvalidRequestError("confine_to must be a list of paths or URIs")
        roots = (Location._parse(root, None).uri for root in confine_to)
        return replace(place, confine_to=tuple(dict.fromkeys((place.uri, *roots))))

    @staticmethod
    def _parse(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None) -> Location:
        text = _FILE_WITHOUT_HOST.sub("file://", os.fspath(uri), count=1)
        options = dict(storage_options or {})
        match = _SCHEME.fullmatch(text)
        if match is None:
            return Location(uri=_local(text), options=_pairs(options))
        name, rest = match[1].lower(), match[2]
        scheme = _ALIASES.get(name, name)
        if scheme not in SCHEMES:
            raise InvalidRequestError(
                f"{text!r} has the unknown scheme {name!r}; known schemes: {', '.join(SCHEMES)}"
            )
        rest, _, _ = rest.partition("#")
        rest, _, query = rest.partition("?")
        if scheme in _LOCAL:
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
        return Location.parse(uri, self.storage_options, confine_to=self.confine_to)

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
    ensure_known(options)
    return tuple(sorted(options.items()))
