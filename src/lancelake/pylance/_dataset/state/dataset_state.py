"""State of a dataset: the open version, its session, its lock and its default options."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self, Unpack

from lancelake.commit.locked import CommitLock
from lancelake.commit.snapshot import Snapshot
from lancelake.pylance._dataset.arguments.offered_options import ensure_openable
from lancelake.pylance._dataset.arguments.options import LegacyOptions
from lancelake.pylance._dataset.arguments.reference import VersionLike, reference
from lancelake.pylance._dataset.arguments.uris import uri_of
from lancelake.pylance._dataset.state.guarded import GuardedDataset, commit_lock_of, missing_lock
from lancelake.pylance._dataset.state.io_stats import TableIo
from lancelake.pylance._dataset.state.session import Session, locate, session_at
from lancelake.storage.location import Location
from lancelake.table.open import AtVersion, open_snapshot


class DatasetState(GuardedDataset):
    """A table that is open at a version; base of the mixins that return further ones."""

    _io: TableIo
    _session: Session
    _snapshot: Snapshot
    _default_scan_options: dict[str, Any] | None
    _uri: str

    def __init__(
        self,
        uri: str | Path,
        version: VersionLike | None = None,
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
        **rest: Unpack[LegacyOptions],
    ) -> None:
        """Open a version; the namespace, if any, has already resolved the URI."""
        ensure_openable(
            {
                "serialized_manifest": serialized_manifest,
                "read_params": read_params,
                "namespace_client_managed_versioning": namespace_client_managed_versioning,
                "base_store_params": base_store_params,
                **rest,
            }
        )
        self._session = session or Session()
        location = locate(uri, storage_options, session=self._session, confine_to=confine_to)
        self._io = TableIo(location)
        self._lock = commit_lock_of(commit_lock)
        self._default_scan_options = default_scan_options
        self._snapshot = open_snapshot(location, reference(version))
        self._uri = uri_of(uri)

    @classmethod
    def _of(
        cls,
        snapshot: Snapshot,
        default_scan_options: dict[str, Any] | None,
        uri: str | None = None,
        *,
        lock: CommitLock | None = None,
    ) -> Self:
        made = cls.__new__(cls)
        made._session = session_at(snapshot.location)
        made._io = TableIo(snapshot.location)
        made._lock = lock
        made._snapshot = snapshot
        made._default_scan_options = default_scan_options
        made._uri = snapshot.location.uri if uri is None else uri
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        place = (self._snapshot.location, self._snapshot.version)
        is_guarded = self._lock is not None
        return (_reopen, (type(self), *place, self._default_scan_options, self._uri, is_guarded))

    def __copy__(self) -> Self:
        options, uri = self._default_scan_options, self._uri
        return self._of(self._snapshot, options, uri, lock=self._lock)

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


def _reopen(
    kind: type[DatasetState],
    location: Location,
    version: int,
    default_scan_options: dict[str, Any] | None,
    uri: str,
    is_guarded: bool,
) -> DatasetState:
    snapshot = open_snapshot(location, AtVersion(version))
    lock = missing_lock if is_guarded else None
    return kind._of(snapshot, default_scan_options, uri, lock=lock)
