"""State of a dataset: snapshot, session, counted I/O."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, Self, Unpack
from urllib.parse import parse_qsl

from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values.indices import index_cache
from lancelake.core.values.metadata import Caches, Location, Snapshot, default_session
from lancelake.core.values.metadata import Session as CoreSession
from lancelake.core.values.reads import IoCounts, file_ends, meter_of
from lancelake.core.values.versions import AtVersion, CommitMetrics
from lancelake.core.values.writes import CommitChoices, CommitLock
from lancelake.data.codec.official import reads_so_far
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset import arguments
from lancelake.storage.location import forget_scope, in_scope, scope_of


def commit_lock_of(lock: CommitLock | None) -> CommitLock | None:
    """Return the lock, which must be callable."""
    if lock is not None and not callable(lock):
        raise TypeError(f"commit_lock must be a function, got {type(lock)}")
    return lock


def lock_of(where: Any, lock: CommitLock | None) -> CommitLock | None:
    """Return the lock passed to a call, else that of the dataset."""
    return lock if lock is not None else getattr(where, "_lock", None)


def missing_lock(version: int) -> AbstractContextManager[NoReturn]:  # a lock
    """Placeholder of a lock that cannot be pickled: refuses to commit."""
    raise InvalidRequestError(
        "the commit lock of this dataset was lost when it was pickled",
        action="Open the table again with commit_lock.",
    )


@dataclass(frozen=True, kw_only=True)
class IOStats:
    """Numbers of I/O operations, and the bytes that they moved."""

    read_iops: int
    read_bytes: int
    write_iops: int
    written_bytes: int

    def __repr__(self) -> str:
        """Format as pylance does."""
        return (
            f"IOStats(read_iops={self.read_iops}, read_bytes={self.read_bytes}, "
            f"write_iops={self.write_iops}, write_bytes={self.written_bytes})"
        )


@dataclass(frozen=True, slots=True)
class _Reading:
    """Counts of a table, and the requests and bytes that the codec read in this process."""

    counts: IoCounts
    codec_reads: tuple[int, int]

    def since(self, before: _Reading) -> IOStats:
        """Return the I/O after another reading."""
        added = self.counts - before.counts
        return IOStats(
            read_iops=added.reads + self.codec_reads[0] - before.codec_reads[0],
            read_bytes=added.bytes_read + self.codec_reads[1] - before.codec_reads[1],
            write_iops=added.writes,
            written_bytes=added.bytes_written,
        )


class TableIo:
    """I/O on a table since an object was made, or since it was asked last."""

    def __init__(self, location: Location) -> None:
        self._meter = meter_of(location)
        self._before = self._now()

    def so_far(self) -> IOStats:
        """Return the I/O without resetting the counts."""
        return self._now().since(self._before)

    def take(self) -> IOStats:
        """Return the I/O and start again."""
        now = self._now()
        before, self._before = self._before, now
        return now.since(before)

    def _now(self) -> _Reading:
        return _Reading(self._meter.counts, reads_so_far())


Backend = str | dict[str, Any]
"""A URI or a description of the cache of official releases."""

_KIND = "moka"
_CAPACITY = "capacity"


def cache_limit(name: str, size_bytes: int | None, backend: Backend | None) -> int | None:
    """Return the limit of a cache in bytes, given as a number or as the capacity of a backend."""
    if size_bytes is not None and backend is not None:
        raise InvalidRequestError(f"{name}_size_bytes and {name}_backend are mutually exclusive")
    if backend is None:
        return size_bytes
    try:
        return _moka_capacity(*_parse_backend(backend))
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{name}_backend: {error.problem}", found=repr(backend)) from None


def _parse_backend(backend: Any) -> tuple[str, dict[str, str]]:
    if isinstance(backend, str):
        kind, colon, rest = backend.partition(":")
        if not colon:
            raise InvalidRequestError(f"cache backend uri {_quote(backend)} is missing ':'")
        return kind, dict(parse_qsl(rest.partition("?")[2], keep_blank_values=True))
    if not isinstance(backend, dict):
        problem = "expected str (URI) or dict with 'kind'/'options' keys"
        raise InvalidRequestError(f"{problem}, got {type(backend).__name__}")
    unknown = [key for key in backend if key not in ("kind", "options")]
    if unknown:
        problem = f"unknown dict key {_quote(unknown[0])}; expected 'kind' or 'options'"
        raise InvalidRequestError(problem)
    if "kind" not in backend:
        raise InvalidRequestError("dict must contain a 'kind' key")
    options = backend.get("options") or {}
    if not all(isinstance(value, str) for value in options.values()):
        raise InvalidRequestError("'options' values must be strings")
    return backend["kind"], options


def _moka_capacity(kind: str, options: dict[str, str]) -> int:
    if kind.lower() != _KIND:
        raise InvalidRequestError(f"unknown cache backend kind: {_quote(kind)}")
    where = f"{_KIND} cache backend"
    unknown = [key for key in options if key != _CAPACITY]
    if unknown:
        raise InvalidRequestError(f"{where}: unknown option {_quote(unknown[0])}")
    capacity = options.get(_CAPACITY)
    if capacity is None:
        problem = f"{where}: capacity is required; use {_KIND}://?{_CAPACITY}=<bytes>"
        raise InvalidRequestError(problem)
    if not capacity:
        raise InvalidRequestError(f"{where}: capacity must not be empty")
    if not (capacity.isascii() and capacity.isdigit()):
        raise InvalidRequestError(f"{where}: cannot parse capacity {_quote(capacity)}")
    return int(capacity)


def _quote(text: object) -> str:
    return f'"{text}"'


_PRIVATE = "memory://"
_making_scope = threading.Lock()


class Session:
    """Caches of the tables opened with it, and a scope of `memory://` tables.

    Tables in memory are freed with the last dataset that uses the session. A session without
    limits shares the caches of the process: 512 MiB of index files, 32 MiB of file metadata. With
    a limit, the session has a cache of its own for its tables; a backend states the limit as its
    capacity.

    Args:
        index_cache_size_bytes: Limit of the cached index files.
        metadata_cache_size_bytes: Limit of the cached metadata of data files.
        index_cache_backend: `moka://?capacity=<bytes>`, instead of the size.
        metadata_cache_backend: The same for file metadata.
        store_registry: Ignored.
        cache_size_bytes: Limit of everything that is cached for its tables: index files, metadata,
            layouts of files, deleted rows, small fragments and open files.

    Examples:
        >>> session = lance.Session()
        >>> made = lance.write_dataset({"id": [1]}, "memory://t", session=session)
        >>> lance.dataset("memory://t", session=session).count_rows()
        1
    """

    def __init__(
        self,
        index_cache_size_bytes: int | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_backend: Backend | None = None,
        metadata_cache_backend: Backend | None = None,
        store_registry: Any = None,
        *,
        cache_size_bytes: int | None = None,
    ) -> None:
        index = cache_limit("index_cache", index_cache_size_bytes, index_cache_backend)
        metadata = cache_limit("metadata_cache", metadata_cache_size_bytes, metadata_cache_backend)
        own = {index_cache.PARTS.name: index, file_ends.ENDS.name: metadata}
        limits = {name: limit for name, limit in own.items() if limit is not None}
        self._core = _core_session(limits, cache_size_bytes)
        if self._core is not default_session():
            _owners[self._core] = self
        self._made_scope: str | None = None
        self._tables: set[str] = set()

    @property
    def _scope(self) -> str:
        """Name of the scope, made on first use: only tables in memory need one."""
        with _making_scope:
            if self._made_scope is None:
                self._made_scope = default_session().ids.uuid4().hex
                _sessions[self._made_scope] = self
                weakref.finalize(self, forget_scope, self._made_scope)
            return self._made_scope

    def index_cache_size_bytes(self) -> int:
        """Return how many bytes of index files are cached for the tables of the session.

        Without a limit, what other sessions read of these tables counts, too.
        """
        return index_cache.size_below(self._tables, self._core.caches)

    def size_bytes(self) -> int:
        """Return how many bytes of index files and of file metadata are cached for the tables."""
        return self.index_cache_size_bytes() + self._metadata_bytes()

    def _metadata_bytes(self) -> int:
        return file_ends.size_below(self._tables, self._core.caches)

    def cache_sizes(self) -> dict[str, int]:
        """Return how many bytes are cached, by kind of content.

        A session without limits of its own shares the caches of the process, which are counted.

        Examples:
            >>> session = lance.Session(cache_size_bytes=64 << 20)
            >>> session.cache_sizes()
            {}
        """
        return self._core.caches.sizes

    def _add(self, location: Location) -> None:
        """Count a table among those of the session."""
        self._tables.add(location.uri)

    def is_same_as(self, other: Session) -> bool:
        """Whether two objects are the same session."""
        return self is other

    def __repr__(self) -> str:
        index, metadata = self.index_cache_size_bytes(), self._metadata_bytes()
        return f"Session(index_cache_size_bytes={index}, metadata_cache_size_bytes={metadata})"


_sessions: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()
_owners: weakref.WeakValueDictionary[CoreSession, Session] = weakref.WeakValueDictionary()
"""Sessions by what the locations of their tables know, unless that is the default one."""


def _core_session(limits: Mapping[str, int], most_bytes: int | None) -> CoreSession:
    """Return the default session, with caches of its own if any limit is given."""
    shared = default_session()
    if most_bytes is not None:
        return replace(shared, caches=Caches(most_bytes=most_bytes, limits=limits))
    if not limits:
        return shared
    own = Caches(most_bytes=sum(limits.values()), limits=limits, shared=shared.caches)
    return replace(shared, caches=own)


def session_at(location: Location) -> Session:
    """Return the session of a table in memory or with a cache of its own, or a new one."""
    scope = scope_of(location)
    shared = _owners.get(location.session) if scope is None else _sessions.get(scope)
    session = shared
    if session is None:
        session = Session()
        session._core = location.session
    session._add(location)
    return session


def ensure_own(session: Session | None, dataset: Any) -> None:
    """Refuse a session for writing to a dataset that has another one."""
    if session is not None and session is not dataset.session():
        problem = "The provided session is not the destination dataset's own session"
        raise InvalidRequestError(problem, action="Pass that of the dataset, or none.")


def locate(
    uri: str | Path,
    storage_options: Mapping[str, str] | None,
    *,
    session: Session | None,
    confine_to: Iterable[str | Path] | None = None,
) -> Location:
    """Parse the URI of a table; a `memory://` URI is private to the session.

    Tables at `shared-memory://` URIs are shared by the whole process.
    """
    if session is not None and not isinstance(session, Session):
        raise TypeError(f"session must be a Session, got {type(session)}")
    text = os.fspath(uri)
    if session is not None and text.startswith(_PRIVATE):
        text = in_scope(text, session._scope)
    core = None if session is None else session._core
    location = Location.parse(text, storage_options, confine_to=confine_to, session=core)
    if session is not None:
        session._add(location)
    return location


class DatasetState:
    """A table that is open at a version; base of the mixins of `LanceDataset`."""

    _io: TableIo
    _session: Session
    _snapshot: Snapshot
    _lock: CommitLock | None = None
    _default_scan_options: dict[str, Any] | None
    _uri: str

    def __init__(
        self,
        uri: str | Path,
        version: arguments.VersionLike | None = None,
        block_size: int | None = None,
        index_cache_size: int | None = None,
        metadata_cache_size: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: dict[str, str] | None = None,
        serialized_manifest: bytes | None = None,
        default_scan_options: dict[str, Any] | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_size_bytes: int | None = None,
        read_params: dict[str, Any] | None = None,
        session: Session | None = None,
        namespace_client: Any = None,
        table_id: list[str] | None = None,
        namespace_client_managed_versioning: bool = False,
        base_store_params: dict[str, dict[str, str]] | None = None,
        *,
        confine_to: Iterable[str | Path] | None = None,
        **rest: Unpack[arguments.LegacyOptions],
    ) -> None:
        """Open a version; the namespace, if any, has already resolved the URI."""
        arguments.ensure_openable(
            {
                "serialized_manifest": serialized_manifest,
                "read_params": read_params,
                "namespace_client_managed_versioning": namespace_client_managed_versioning,
                "base_store_params": base_store_params,
                **rest,
            }
        )
        self._session = session or Session(index_cache_size_bytes, metadata_cache_size_bytes)
        location = locate(uri, storage_options, session=self._session, confine_to=confine_to)
        self._io = TableIo(location)
        self._lock = commit_lock_of(commit_lock)
        self._default_scan_options = default_scan_options
        self._snapshot = TablePlace(location).open(arguments.reference(version)).snapshot
        self._uri = arguments.uri_of(uri)

    @property
    def _table(self) -> Table:
        return Table(self._snapshot)

    @property
    def _choices(self) -> CommitChoices:
        return CommitChoices(lock=self._lock)

    @classmethod
    def _of(
        cls,
        snapshot: Snapshot,
        default_scan_options: dict[str, Any] | None,
        uri: str | None = None,
        *,
        lock: CommitLock | None = None,
    ) -> Self:
        dataset = cls.__new__(cls)
        dataset._session = session_at(snapshot.location)
        dataset._io = TableIo(snapshot.location)
        dataset._lock = lock
        dataset._snapshot = snapshot
        dataset._default_scan_options = default_scan_options
        dataset._uri = snapshot.location.uri if uri is None else uri
        return dataset

    def __reduce__(self) -> tuple[Any, ...]:
        place = (self._snapshot.location, self._snapshot.version)
        is_guarded = self._lock is not None
        return (_reopen, (type(self), *place, self._default_scan_options, self._uri, is_guarded))

    def __copy__(self) -> Self:
        options, uri = self._default_scan_options, self._uri
        return self._of(self._snapshot, options, uri, lock=self._lock)

    @property
    def last_commit(self) -> CommitMetrics | None:
        """What the last commit by this object took; None if it has not committed.

        Rows, files and bytes are recorded with each version: `lancelake log` shows them.

        Examples:
            >>> ds.delete("id = 1")
            {'num_deleted_rows': 1}
            >>> ds.last_commit.attempts, ds.last_commit.concurrent_commits
            (1, 0)
        """
        return self._snapshot.commit

    def session(self) -> Session:
        """Return the session of the dataset.

        Returns:
            The session, whose `memory://` tables other datasets can share.

        Examples:
            >>> again = lance.dataset("people.lance", session=ds.session())
            >>> again.count_rows()
            3
        """
        return self._session

    @property
    def uri(self) -> str:
        """Location of the table, as given.

        Examples:
            >>> ds.uri
            'people.lance'
        """
        return self._uri

    def io_stats_snapshot(self) -> IOStats:
        """Return the I/O since the dataset was opened or since `io_stats_incremental`.

        Metadata, and data and index files that are written, are counted for this table. Reads of
        data and index files are counted for the whole process: the codec does not tell tables
        apart.

        Returns:
            The numbers of reads and writes, and of the bytes.

        Examples:
            >>> rows = ds.to_table()
            >>> ds.io_stats_snapshot().read_bytes > 0
            True
        """
        return self._io.so_far()

    def io_stats_incremental(self) -> IOStats:
        """Return the I/O of `io_stats_snapshot`, and count again from zero.

        Examples:
            >>> first = ds.io_stats_incremental()
            >>> ds.io_stats_incremental().read_iops
            0
        """
        return self._io.take()


def _reopen(
    kind: type[DatasetState],
    location: Location,
    version: int,
    default_scan_options: dict[str, Any] | None,
    uri: str,
    is_guarded: bool,
) -> DatasetState:
    snapshot = TablePlace(location).open(AtVersion(version)).snapshot
    lock = missing_lock if is_guarded else None
    return kind._of(snapshot, default_scan_options, uri, lock=lock)
