"""Scan request: columns, filter, limit and order."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.errors import InvalidRequestError
from lancelake.expr.predicate import Filter
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId
from lancelake.index.text.query import TextQuery

DEFAULT_BATCH_ROWS = 8192
_MAX_BATCH_ROWS = (1 << 32) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """A sort key."""

    column: str
    ascending: bool = True
    nulls_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    """Columns, rows and order of a scan; None means all or the default."""

    columns: tuple[str, ...] | FrozenMap[str, str] | None = None
    filter: Filter | None = None
    limit: int | None = None
    offset: int | None = None
    order_by: tuple[Ordering, ...] = ()
    batch_size: int | None = None
    batch_readahead: int | None = None
    fragment_readahead: int | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    fragment_ids: tuple[FragmentId, ...] | None = None
    late_materialization: bool | tuple[str, ...] | None = None
    include_deleted_rows: bool = False
    strict_batch_size: bool = False
    blob_values: bool = False
    """Whether blobs are returned as bytes instead of descriptors."""
    remembers_small: bool = False
    """Whether columns of small fragments are cached."""
    use_scalar_index: bool = True
    """Whether indices are asked for the rows that the filter keeps."""
    fast_search: bool = False
    """Whether rows that an index does not cover are left out, where an index is asked."""
    json_binary: bool = False
    """Whether JSON is returned in its stored form instead of as text."""

    text_query: TextQuery | None = None
    """A full text query; only rows that match it are returned, best first."""
    prefilter: bool = False
    """Whether a search looks only at rows that the filter keeps."""
    adds_score: bool = True
    """Whether a full text search adds the score to columns that were asked for."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 0:
            raise InvalidRequestError("Limit must be non-negative", limit=self.limit)
        if self.offset is not None and self.offset < 0:
            raise InvalidRequestError("Offset must be non-negative", offset=self.offset)
        if self.batch_size is not None and not 1 <= self.batch_size <= _MAX_BATCH_ROWS:
            problem = f"batch_size must be between 1 and {_MAX_BATCH_ROWS}, got {self.batch_size}"
            raise InvalidRequestError(problem, batch_size=self.batch_size)
