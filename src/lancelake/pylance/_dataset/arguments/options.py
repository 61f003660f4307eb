"""Names and types of keyword arguments that methods pass on, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, TypedDict
from uuid import UUID

import pyarrow as pa

from lancelake.commit.locked import CommitLock
from lancelake.pylance._dataset.arguments.base_path import DatasetBasePath
from lancelake.pylance._dataset.arguments.scan_arguments import Columns, Filter
from lancelake.pylance._values.opened import OpenedFragment
from lancelake.pylance._values.ordering import ColumnOrdering

WriteMode: TypeAlias = Literal["create", "append", "overwrite"]
InsertMode: TypeAlias = Literal["append", "overwrite"]
BlobModeName: TypeAlias = Literal["lazy", "bytes", "descriptions"]
ExternalBlobMode: TypeAlias = Literal["reference", "ingest"]
InvalidText: TypeAlias = Literal["error", "replace"]


NOT_WRITE_OPTIONS = (
    "data_obj",
    "uri",
    "schema",
    "mode",
    "storage_options",
    "namespace_client",
    "table_id",
    "session",
    "confine_to",
    "commit_lock",
)
"""Arguments of `write_dataset` that are no options of writing."""


class NoOptions(TypedDict):
    """No keyword arguments."""


class LegacyOptions(TypedDict, total=False):
    """Arguments of older releases of pylance, which are accepted with their defaults only."""

    namespace: Any
    storage_options_provider: Any


class UncommittedOptions(LegacyOptions, total=False):
    """Further arguments of writes without a commit."""

    namespace_client_managed_versioning: bool


class BatchCommitOptions(UncommittedOptions, total=False):
    """Further arguments of `LanceDataset.commit_batch`."""

    namespace_client: Any
    table_id: list[str] | None


class FragmentOptions(UncommittedOptions, total=False):
    """Further arguments of `LanceFragment.create`."""

    external_blob_mode: ExternalBlobMode
    allow_external_blob_outside_bases: bool
    target_bases: list[str] | None
    target_all_bases: bool | None
    initial_bases: list[DatasetBasePath] | None
    invalid_utf8: InvalidText
    base_store_params: dict[str, dict[str, str]] | None
    blob_pack_file_size_threshold: int | None
    data_cache_bytes: int | None
    max_page_bytes: int | None


class InsertOptions(FragmentOptions, total=False):
    """Arguments of `write_dataset` that `LanceDataset.insert` takes as well."""

    schema: pa.Schema | None
    max_rows_per_file: int
    max_rows_per_group: int | None
    max_bytes_per_file: int
    commit_lock: CommitLock | None
    progress: Any
    data_storage_version: str | None
    use_legacy_format: bool | None
    enable_v2_manifest_paths: bool
    enable_stable_row_ids: bool
    auto_cleanup_options: Any
    commit_message: str | None
    transaction_properties: dict[str, str] | None
    schema_mode: Literal["merge"] | None
    session: Any


class ModelOptions(InsertOptions, total=False):
    """Further arguments of `LanceDataset.from_pydantic_model`."""

    storage_options: dict[str, str] | None


class RowScanOptions(TypedDict, total=False):
    """Arguments of `LanceDataset.scanner` that select rows by other means than a filter."""

    fragments: Iterable[OpenedFragment] | None
    index_segments: Iterable[str | UUID] | None
    scan_stats_callback: Callable[[Any], None] | None
    row_addr_allowlist: bytes | None
    row_addr_blocklist: bytes | None


class TableScanOptions(RowScanOptions, total=False):
    """Further arguments of `LanceDataset.to_table`."""

    strict_batch_size: bool | None


class BatchScanOptions(RowScanOptions, total=False):
    """Further arguments of `LanceDataset.to_batches`."""

    fast_search: bool | None
    include_deleted_rows: bool | None


class FragmentScanOptions(TypedDict, total=False):
    """Further arguments of `LanceFragment.scanner` and `to_batches`."""

    scan_in_order: bool
    use_stats: bool
    prefilter: bool
    fast_search: bool
    disable_scoring_autoprojection: bool


class FragmentTableOptions(FragmentScanOptions, total=False):
    """Further arguments of `LanceFragment.to_table`."""

    batch_size: int | None
    batch_readahead: int | None


class _SelectedRowsOptions(TableScanOptions, total=False):
    """Arguments of `LanceDataset.scanner` but the columns, the filter and the limit."""

    offset: int | None
    nearest: dict[str, Any] | None
    batch_size: int | None
    batch_size_bytes: int | None
    batch_readahead: int | None
    fragment_readahead: int | None
    scan_in_order: bool | None
    full_text_query: Any
    prefilter: bool | None
    with_row_id: bool | None
    with_row_address: bool | None
    use_stats: bool | None
    fast_search: bool | None
    io_buffer_size: int | None
    late_materialization: bool | list[str] | None
    blob_handling: str | None
    use_scalar_index: bool | None
    include_deleted_rows: bool | None
    order_by: list[ColumnOrdering | str] | None
    disable_scoring_autoprojection: bool | None


class CountOptions(_SelectedRowsOptions, total=False):
    """Arguments of `LanceDataset.scanner` but the columns and the filter."""

    limit: int | None


class HeadOptions(_SelectedRowsOptions, total=False):
    """Arguments of `LanceDataset.scanner` but the limit."""

    columns: Columns
    filter: Filter


class SortOptions(TypedDict, total=False):
    """Further arguments of `pyarrow.Table.sort_by`."""

    null_placement: Literal["at_start", "at_end"]


class PandasOptions(TypedDict, total=False):
    """Arguments of `pyarrow.Table.to_pandas`."""

    memory_pool: Any
    categories: list[str] | None
    strings_to_categorical: bool
    zero_copy_only: bool
    integer_object_nulls: bool
    date_as_object: bool
    timestamp_as_object: bool
    use_threads: bool
    deduplicate_objects: bool
    ignore_metadata: bool
    safe: bool
    split_blocks: bool
    self_destruct: bool
    maps_as_pydicts: Literal["lossy", "strict"] | None
    types_mapper: Callable[[Any], Any] | None
    coerce_temporal_nanoseconds: bool
