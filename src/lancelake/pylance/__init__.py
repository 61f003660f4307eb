"""pylance-compatible API: the same names, arguments and results."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from lancelake.commit.locked import CommitLock
from lancelake.data.write_task import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE, Progress
from lancelake.errors import InvalidRequestError, UnsupportedError, naming
from lancelake.pylance._dataset.base_path import DatasetBasePath
from lancelake.pylance._dataset.guarded import lock_of
from lancelake.pylance._dataset.index_values import Index, IndexFile
from lancelake.pylance._dataset.lance_operation import LanceOperation
from lancelake.pylance._dataset.reference import VersionLike
from lancelake.pylance._dataset.scanner import LanceScanner
from lancelake.pylance._dataset.stats import DataStatistics, FieldStatistics
from lancelake.pylance._dataset.times import to_datetime
from lancelake.pylance._dataset.transaction import Transaction
from lancelake.pylance._dataset.uris import uri_of
from lancelake.pylance._dataset.writing import (
    AutoCleanupConfig,
    commit_lock_of,
    ensure_openable,
    write_options,
    write_rows,
)
from lancelake.pylance._values.ordering import ColumnOrdering
from lancelake.pylance.blob import (
    Blob,
    BlobArray,
    BlobColumn,
    BlobFile,
    BlobType,
    blob_array,
    blob_field,
)
from lancelake.pylance.dataset import LanceDataset
from lancelake.pylance.fragment import FragmentMetadata, LanceFragment
from lancelake.pylance.progress import FragmentWriteProgress
from lancelake.pylance.schema import json_to_schema, schema_to_json
from lancelake.pylance.udf import batch_udf
from lancelake.storage.location import Location
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
    session: Any = None,
    namespace: Any = None,
    table_id: list[str] | None = None,
    storage_options_provider: Any = None,
    confine_to: Iterable[str | Path] | None = None,
) -> LanceDataset:
    """Open a table, by default at its newest version.

    `version` is a number, a tag, or a branch with a number; `asof` is a time. Every commit through
    the dataset holds `commit_lock`. With `confine_to`, a list of paths or URIs, nothing is read or
    written outside the table and these roots, whatever paths the table contains. Options that tune
    official Lance (caches, block sizes, sessions) are accepted and ignored; tables of a namespace
    are not supported.
    """
    if namespace is not None or table_id is not None or storage_options_provider is not None:
        raise UnsupportedError("opening a table through a namespace is not supported")
    ensure_openable({"read_params": read_params})
    if uri is None:
        raise InvalidRequestError("Must provide 'uri'")
    if version is None and asof is not None:
        place = Location.parse(uri, storage_options, confine_to=confine_to)
        with naming(place.uri):
            found = open_snapshot(place, time_reference(to_datetime(asof)))
        lock = commit_lock_of(commit_lock)
        return LanceDataset._of(found, default_scan_options, uri_of(uri), lock=lock)
    return LanceDataset(
        uri,
        version,
        storage_options=storage_options,
        default_scan_options=default_scan_options,
        confine_to=confine_to,
        commit_lock=commit_lock,
    )


def write_dataset(
    data_obj: Any,
    uri: str | Path | LanceDataset | None = None,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = MAX_ROWS_PER_FILE,
    max_rows_per_group: int | None = 1024,
    max_bytes_per_file: int = MAX_BYTES_PER_FILE,
    commit_lock: CommitLock | None = None,
    progress: FragmentWriteProgress | Progress | None = None,
    storage_options: dict[str, str] | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    auto_cleanup_options: AutoCleanupConfig | None = None,
    commit_message: str | None = None,
    transaction_properties: dict[str, str] | None = None,
    initial_bases: list[DatasetBasePath] | None = None,
    target_bases: list[str] | None = None,
    target_all_bases: bool | None = None,
    allow_external_blob_outside_bases: bool = False,
    schema_mode: str | None = None,
    confine_to: Iterable[str | Path] | None = None,
    invalid_utf8: str = "error",
    **rest: Any,
) -> LanceDataset:
    """Write rows to a new table, append them to a table, or overwrite a table.

    `mode` is create, append or overwrite; `schema_mode="merge"` adds new columns. `confine_to`
    limits the table as in `dataset`. `invalid_utf8="replace"` replaces invalid UTF-8.
    """
    chosen = write_options(
        mode,
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        commit_lock=lock_of(uri, commit_lock),
        progress=progress,
        data_storage_version=data_storage_version,
        use_legacy_format=use_legacy_format,
        enable_v2_manifest_paths=enable_v2_manifest_paths,
        enable_stable_row_ids=enable_stable_row_ids,
        auto_cleanup_options=auto_cleanup_options,
        commit_message=commit_message,
        transaction_properties=transaction_properties,
        initial_bases=initial_bases,
        target_bases=target_bases,
        target_all_bases=target_all_bases,
        allow_external_blob_outside_bases=allow_external_blob_outside_bases,
        schema_mode=schema_mode,
        invalid_utf8=invalid_utf8,
        **rest,
    )
    if uri is None:
        raise InvalidRequestError("Must provide 'uri'")
    opened = uri._snapshot if isinstance(uri, LanceDataset) else None
    target = opened or Location.parse(uri, storage_options, confine_to=confine_to)
    made = write_rows(data_obj, target, schema=schema, options=chosen)
    return LanceDataset._of(made, None, uri_of(uri), lock=chosen.choices.lock)


__all__ = [
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobFile",
    "BlobType",
    "ColumnOrdering",
    "DataStatistics",
    "DatasetBasePath",
    "FieldStatistics",
    "FragmentMetadata",
    "Index",
    "IndexFile",
    "LanceDataset",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "Transaction",
    "batch_udf",
    "blob_array",
    "blob_field",
    "dataset",
    "json_to_schema",
    "schema_to_json",
    "write_dataset",
]
