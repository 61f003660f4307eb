"""Opening of a table: `dataset`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from lancelake.commit.locked import CommitLock
from lancelake.errors import UnsupportedError, naming
from lancelake.pylance._dataset.arguments.namespace_tables import find_table
from lancelake.pylance._dataset.arguments.offered_options import ensure_openable
from lancelake.pylance._dataset.arguments.reference import VersionLike
from lancelake.pylance._dataset.arguments.times import to_datetime
from lancelake.pylance._dataset.arguments.uris import uri_of
from lancelake.pylance._dataset.state.guarded import commit_lock_of
from lancelake.pylance._dataset.state.session import Session, locate
from lancelake.pylance.dataset import LanceDataset
from lancelake.table.open import open_snapshot, time_reference


def dataset(
    uri: str | Path | None = None,
    version: VersionLike | None = None,
    asof: datetime | str | None = None,
    block_size: int | None = None,
    commit_lock: CommitLock | None = None,
    index_cache_size: int | None = None,
    storage_options: dict[str, str] | None = None,
    default_scan_options: dict[str, Any] | None = None,
    metadata_cache_size_bytes: int | None = None,
    index_cache_size_bytes: int | None = None,
    read_params: dict[str, Any] | None = None,
    session: Session | None = None,
    namespace_client: Any = None,
    table_id: list[str] | None = None,
    base_store_params: dict[str, dict[str, str]] | None = None,
    *,
    confine_to: Iterable[str | Path] | None = None,
    namespace: Any = None,
    storage_options_provider: Any = None,
) -> LanceDataset:
    """Open a table, by default at its newest version.

    Options that tune official Lance (`block_size`, cache sizes, `read_params`) are accepted and
    ignored.

    Args:
        uri: Path or URI of the table.
        version: A version number, the name of a tag, or a branch with a version.
        asof: Open the newest version at this time instead.
        commit_lock: Context manager that every commit through the dataset holds.
        storage_options: Options and credentials of the object store.
        default_scan_options: Arguments of `LanceDataset.scanner` that apply unless a scan sets
            them.
        session: Session whose `memory://` tables are visible.
        namespace_client: Namespace to find the table in, together with `table_id`.
        table_id: Name of the table in the namespace.
        confine_to: Paths or URIs. Nothing is read or written outside of the table and these roots,
            whatever paths the table contains.
        namespace: The namespace client, as older releases name the argument.

    Returns:
        The table at the requested version.

    Raises:
        TableNotFoundError: There is no table at `uri`.
        VersionNotFoundError: The table does not have the version, or it was cleaned up.
        RefNotFoundError: The table has no such tag or branch.

    Examples:
        >>> lance.dataset("people.lance").count_rows()
        3
        >>> lance.dataset("people.lance", version=1).version
        1
    """
    if index_cache_size is not None:
        warnings.warn(
            "index_cache_size is deprecated; use index_cache_size_bytes",
            DeprecationWarning,
            stacklevel=2,
        )
    if storage_options_provider is not None:
        raise UnsupportedError("storage_options_provider is not supported")
    client = namespace if namespace_client is None else namespace_client
    found = find_table(uri, client, table_id, storage_options)
    if version is None and asof is not None:
        ensure_openable({"read_params": read_params, "base_store_params": base_store_params})
        shared = session or Session()
        place = locate(found.uri, found.storage_options, session=shared, confine_to=confine_to)
        with naming(place.uri):
            snapshot = open_snapshot(place, time_reference(to_datetime(asof)))
        lock = commit_lock_of(commit_lock)
        return LanceDataset._of(snapshot, default_scan_options, uri_of(found.uri), lock=lock)
    return LanceDataset(
        found.uri,
        version,
        commit_lock=commit_lock,
        storage_options=found.storage_options,
        default_scan_options=default_scan_options,
        read_params=read_params,
        session=session,
        base_store_params=base_store_params,
        confine_to=confine_to,
    )
