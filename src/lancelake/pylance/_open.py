"""Opening a table, `dataset`, and making one of files or of a Delta table, `convert`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from lancelake.core.table_place import TablePlace
from lancelake.core.values.metadata import Location
from lancelake.core.values.versions import time_reference
from lancelake.core.values.writes import CommitChoices, CommitLock
from lancelake.errors import UnsupportedError
from lancelake.pylance._dataset.arguments import (
    VersionLike,
    ensure_openable,
    find_table,
    to_datetime,
    uri_of,
)
from lancelake.pylance._dataset.state import Session, commit_lock_of, locate
from lancelake.pylance.dataset import LanceDataset


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

    Options that tune official Lance (`block_size`, `read_params`, cache sizes that are numbers of
    entries) are accepted and ignored.

    Args:
        uri: Path or URI of the table.
        version: A version number, the name of a tag, or a branch with a version.
        asof: Open the newest version at this time instead.
        commit_lock: Context manager that every commit through the dataset holds.
        storage_options: Options and credentials of the object store.
        default_scan_options: Arguments of `LanceDataset.scanner` that apply unless a scan sets
            them.
        metadata_cache_size_bytes: Limit of the cached metadata of data files, without a session.
        index_cache_size_bytes: Limit of the cached index files, without a session.
        session: Session whose caches are used and whose `memory://` tables are visible.
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
    table = find_table(uri, client, table_id, storage_options)
    if version is None and asof is not None:
        ensure_openable({"read_params": read_params, "base_store_params": base_store_params})
        shared = session or Session(index_cache_size_bytes, metadata_cache_size_bytes)
        place = locate(table.uri, table.storage_options, session=shared, confine_to=confine_to)
        when = asof if isinstance(asof, str) else to_datetime(asof)
        snapshot = TablePlace(place).open(time_reference(when)).snapshot
        lock = commit_lock_of(commit_lock)
        return LanceDataset._of(snapshot, default_scan_options, uri_of(table.uri), lock=lock)
    return LanceDataset(
        table.uri,
        version,
        commit_lock=commit_lock,
        storage_options=table.storage_options,
        default_scan_options=default_scan_options,
        metadata_cache_size_bytes=metadata_cache_size_bytes,
        index_cache_size_bytes=index_cache_size_bytes,
        read_params=read_params,
        session=session,
        base_store_params=base_store_params,
        confine_to=confine_to,
    )


def convert(
    source: str | Path,
    target: str | Path,
    *,
    storage_options: dict[str, str] | None = None,
    enable_stable_row_ids: bool = False,
    commit_message: str | None = None,
    session: Session | None = None,
    confine_to: Iterable[str | Path] | None = None,
) -> LanceDataset:
    """Create a table from a folder of files or from a Delta table, which is not changed.

    Folders such as `day=1` become columns. Of a Delta table, the rows of its newest version are
    copied.

    Args:
        source: Folder of Parquet, CSV, TSV, JSON, JSON lines or Arrow files, or a Delta table.
        target: Path or URI of the new table.
        storage_options: Options and credentials of the object stores of both.
        enable_stable_row_ids: Let rows keep their ids when they are moved.
        commit_message: Message of the version.
        session: Session whose `memory://` tables are visible.
        confine_to: As in `dataset`.

    Raises:
        AlreadyExistsError: There is a table at `target`.
        NotFoundError: The folder does not exist, or has no files of a known format.
        SchemaMismatchError: The files have different schemas.
        UnsupportedError: The Delta table has deletion vectors or mapped column names.

    Examples:
        >>> import pathlib, pyarrow.parquet as pq
        >>> pathlib.Path("sales/day=1").mkdir(parents=True)
        >>> pq.write_table(pa.table({"id": [7, 8]}), "sales/day=1/part.parquet")
        >>> lance.convert("sales", "sales.lance").to_table().to_pylist()
        [{'id': 7, 'day': 1}, {'id': 8, 'day': 1}]
    """
    shared = session or Session()

    def find(uri: str) -> Location:
        return locate(uri, storage_options, session=shared, confine_to=confine_to)

    choices = CommitChoices(message=commit_message, enable_stable_row_ids=enable_stable_row_ids)
    snapshot = TablePlace(find(str(target))).convert(str(source), find, choices)
    return LanceDataset._of(snapshot, None, uri_of(target))
