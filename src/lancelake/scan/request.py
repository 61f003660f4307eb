"""Scan request: columns, filter, limit and order."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.errors import InvalidRequestError
from lancelake.expr.predicate import Filter
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId
from lancelake.index.text.query import TextQuery
from lancelake.scan.nearest import Nearest

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
    nearest: Nearest | None = None
    """Vector search: only the nearest rows are returned, the nearest first."""
    text_query: TextQuery | None = None
    """Full text search: only matching rows are returned, the best first."""
    prefilter: bool = False
    """Whether a search considers only rows that match the filter; else its result is filtered."""
    search_filter: Nearest | TextQuery | None = None
    """A second search: only rows that it finds too are returned."""
    hides_scores: bool = False
    """Whether a search adds no column of scores to the columns of the request."""
    json_binary: bool = False
    """Whether JSON is returned in its stored form instead of as text."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 0:
            raise InvalidRequestError("Limit must be non-negative", limit=self.limit)
        if self.offset is not None and self.offset < 0:
            raise InvalidRequestError("Offset must be non-negative", offset=self.offset)
        if self.batch_size is not None and not 1 <= self.batch_size <= _MAX_BATCH_ROWS:
            problem = f"batch_size must be between 1 and {_MAX_BATCH_ROWS}, got {self.batch_size}"
            raise InvalidRequestError(problem, batch_size=self.batch_size)
