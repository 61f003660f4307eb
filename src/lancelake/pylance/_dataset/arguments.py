"""Arguments of pylance's functions as values of the core."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.core.values.metadata import BaseId, BasePath, FrozenMap, layout
from lancelake.core.values.reads import RowOffsets
from lancelake.core.values.versions import AtTag, AtVersion, Latest, OnBranch, Reference
from lancelake.core.values.writes import CommitLock
from lancelake.errors import (
    InvalidExpressionError,
    InvalidExpressionOSError,
    InvalidRequestError,
    InvalidRequestOSError,
    UnsupportedError,
)
from lancelake.pylance._values.opened import ColumnOrdering, OpenedDataset, OpenedFragment

_MAX_ID = (1 << 32) - 1


@dataclass(frozen=True, repr=False)
class DatasetBasePath:
    """A location outside the table's root for its files; id 0 requests the next free id."""

    path: str
    name: str | None = None
    is_dataset_root: bool = False
    id: int | None = None
    _unknown: bytes = field(default=b"", kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Validate the id."""
        number = self.id or 0
        if not 0 <= number <= _MAX_ID:
            raise InvalidRequestError(f"the id of a base path must be below 2**32, not {number}")
        object.__setattr__(self, "id", number)

    def __repr__(self) -> str:
        name = "None" if self.name is None else f'Some("{self.name}")'
        is_root = "true" if self.is_dataset_root else "false"
        place = f"path={self.path}, is_dataset_root={is_root}"
        return f"DatasetBasePath(id={self.id}, name={name}, {place})"


def from_base_path(base: BasePath) -> DatasetBasePath:
    """Create it from a base path of the format."""
    return DatasetBasePath(
        base.path, base.name, base.is_dataset_root, base.id, _unknown=base.unknown
    )


def to_base_path(base: DatasetBasePath) -> BasePath:
    """Return the base path of the format, including fields without a public attribute."""
    return BasePath(
        id=BaseId(base.id or 0),
        name=base.name,
        is_dataset_root=base.is_dataset_root,
        path=base.path,
        unknown=base._unknown,
    )


TUNING = frozenset(
    {
        "blob_pack_file_size_threshold",
        "max_rows_per_group",
        "session",
    }
)
"""Options that tune official Lance and are ignored here."""

NOT_OFFERED = frozenset(
    {
        "base_store_params",
        "namespace",
        "namespace_client",
        "namespace_client_managed_versioning",
        "storage_options_provider",
        "table_id",
    }
)
"""Options of official Lance that are accepted only with their default values."""

_OPENING = frozenset(
    {
        # Checked by themselves.
        "read_params",
        "serialized_manifest",
        # Tuning.
        "block_size",
        "commit_lock",
        "index_cache_size",
        "index_cache_size_bytes",
        "metadata_cache_size",
        "metadata_cache_size_bytes",
        "session",
    }
)
"""Options of opening a table that are accepted, at least with some values."""

_READ_TUNING = "cache_repetition_index"


def ensure_offered(rest: Mapping[str, Any]) -> None:
    """Accept options that only tune official Lance; refuse unsupported and unknown ones."""
    for name, value in rest.items():
        if name in NOT_OFFERED and value is not None and value is not False:
            raise UnsupportedError(f"{name} is not supported", found=repr(value))
    unknown = [name for name in rest if name not in TUNING and name not in NOT_OFFERED]
    if unknown:
        raise TypeError(f"got an unexpected keyword argument {min(unknown)!r}")


def ensure_openable(rest: Mapping[str, Any]) -> None:
    """Accept options of opening a table that only tune official Lance; refuse the others."""
    if rest.get("serialized_manifest") is not None:
        raise UnsupportedError("serialized_manifest is not supported")
    for name, value in (rest.get("read_params") or {}).items():
        if name != _READ_TUNING and value:
            raise UnsupportedError(f"{name} of read_params is not supported", found=repr(value))
    ensure_offered({name: value for name, value in rest.items() if name not in _OPENING})


Columns: TypeAlias = list[str] | dict[str, str] | None
Filter: TypeAlias = str | pc.Expression | None

_BLOB_HANDLING = ("all_binary", "all_descriptions", "blobs_descriptions")


def asks_for_blob_values(blob_handling: str | None) -> bool:
    """Whether a `blob_handling`, which must be valid, returns bytes."""
    if blob_handling not in (None, *_BLOB_HANDLING):
        expected = ", ".join(_BLOB_HANDLING)
        problem = f"Invalid blob_handling: {blob_handling}. Expected one of: {expected}"
        raise InvalidRequestError(problem, blob_handling=blob_handling)
    return blob_handling == "all_binary"


def row_numbers(indices: Iterable[int] | pa.Array) -> RowOffsets:
    """Convert row numbers to an array; none may be negative."""
    values = indices.to_pylist() if isinstance(indices, pa.Array | pa.ChunkedArray) else indices
    numbers = [operator.index(i) for i in values]
    if min(numbers, default=0) < 0:
        raise OverflowError("can't convert negative int to unsigned")
    return np.array(numbers, dtype=np.uint64)


def request_columns(columns: object) -> tuple[str, ...] | FrozenMap[str, str] | None:
    """Convert columns as given by users to those of a request."""
    if columns is None:
        return None
    if isinstance(columns, Mapping):
        return FrozenMap(dict(columns))
    if not isinstance(columns, list):
        kind = type(columns)
        raise TypeError(f"columns must be a list or dict[name, expression], got {kind}")
    if not all(isinstance(name, str) for name in columns):
        raise TypeError("column names must be strings")
    return tuple(columns)


VersionLike: TypeAlias = int | str | tuple[str | None, int | None]


def reference(version: VersionLike | None) -> Reference:
    """Parse a number, a tag, or a branch with a number; None is the newest version."""
    match version:
        case None:
            return Latest()
        case bool():
            raise InvalidRequestError("version must be an integer or a string.")
        case int():
            return AtVersion(version)
        case str():
            return AtTag(version)
        case (str() | None as branch, int() | None as number):
            return OnBranch(branch, number)
        case _:
            raise InvalidRequestError("version must be an integer or a string.")


def to_datetime(when: object) -> datetime:
    """Parse a datetime, a pandas timestamp or ISO 8601 text; without a time zone it is local."""
    if isinstance(when, datetime):
        return when
    if isinstance(when, str):
        try:
            return datetime.fromisoformat(when.strip())
        except ValueError as error:
            problem = f"Failed to parse timestamp string {when}"
            action = "Write it like 2026-01-31 or 2026-01-31 18:30:00+00:00."
            raise InvalidRequestError(problem, action=action) from error
    raise TypeError(f"Unrecognized version timestamp {when} of type {type(when)}")


def uri_of(where: str | Path | OpenedDataset) -> str:
    """Return the URI to write to: a location, or the version line of a dataset."""
    if isinstance(where, str | Path):
        return os.fspath(where)
    branch = where._snapshot.branch
    suffix = "" if branch is None else f"/{layout.branch_root(branch)}"
    return where.uri if where.uri.endswith(suffix) else f"{where.uri.rstrip('/')}{suffix}"


def branch_uri(dataset: OpenedDataset, name: str) -> str:
    """Return the URI of a branch of the same table."""
    branch = dataset._snapshot.branch
    current = "" if branch is None else f"/{layout.branch_root(branch)}"
    return f"{dataset.uri.removesuffix(current).rstrip('/')}/{layout.branch_root(name)}"


_OS_ERRORS: dict[type[Any], type[InvalidRequestOSError]] = {
    InvalidRequestError: InvalidRequestOSError,
    InvalidExpressionError: InvalidExpressionOSError,
}


@contextmanager
def os_errors() -> Iterator[None]:
    """Raise an invalid request as OSError too, where the counterpart in pylance does so."""
    try:
        yield
    except InvalidRequestError as error:
        kind = _OS_ERRORS.get(type(error))
        if kind is None:
            raise
        raised = kind(
            error.problem,
            table=error.table,
            version=error.version,
            action=error.next_step,
            **error.facts,
        )
        raise raised.with_traceback(error.__traceback__) from error.__cause__


_TOGETHER = "Both 'namespace_client' and 'table_id' must be provided together."


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRequest:
    """Request to describe or declare a table, as clients of the Lance namespace API read it."""

    id: list[str]
    version: int | None = None
    location: str | None = None

    def model_dump(self) -> dict[str, Any]:
        """Return the values by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTable:
    """URI and storage options of a table."""

    uri: Any
    storage_options: dict[str, str] | None


def find_table(
    uri: Any,
    namespace_client: Any,
    table_id: list[str] | None,
    storage_options: dict[str, str] | None,
    *,
    mode: str | None = None,
) -> FoundTable:
    """Return the table of a URI or of a namespace; mode `create` declares the latter.

    Storage options of the namespace take precedence over those of the caller.
    """
    if namespace_client is None and table_id is None:
        if uri is None:
            problem = "Must specify either 'uri' or both 'namespace_client' and 'table_id'."
            raise InvalidRequestError(problem)
        return FoundTable(uri=uri, storage_options=storage_options)
    if uri is not None:
        raise InvalidRequestError("Cannot specify both 'uri' and 'namespace_client/table_id'.")
    if namespace_client is None or table_id is None:
        raise InvalidRequestError(_TOGETHER)
    request = TableRequest(id=list(table_id))
    is_new = mode is not None and mode.lower() == "create"
    ask = namespace_client.declare_table if is_new else namespace_client.describe_table
    answer = ask(request)
    if not answer.location:
        raise InvalidRequestError("Namespace did not return a 'location' for the table")
    if getattr(answer, "managed_versioning", None) is True:
        raise UnsupportedError("namespaces that manage the versions of tables are not supported")
    options = {**(storage_options or {}), **(answer.storage_options or {})}
    return FoundTable(uri=answer.location, storage_options=options or None)


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
    replace_where: Filter
    txn_app_id: str | None
    txn_version: int | None
    session: Any


class ModelOptions(InsertOptions, total=False):
    """Further arguments of `LanceDataset.from_pydantic_model`."""

    storage_options: dict[str, str] | None


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


class _SelectedRowsOptions(TypedDict, total=False):
    """Arguments of `LanceDataset.scanner` but the columns, the filter and the limit."""

    fragments: Iterable[OpenedFragment] | None
    index_segments: Iterable[str | UUID] | None
    scan_stats_callback: Callable[[Any], None] | None
    row_addr_allowlist: bytes | None
    row_addr_blocklist: bytes | None
    strict_batch_size: bool | None
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
