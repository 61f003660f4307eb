"""Request for rows: columns, filter, limit, order, search; and the columns of its result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.caches import cached_by_identity
from lancelake.data.fragment_reader import META_NAMES, META_TYPE, MetaColumn
from lancelake.errors import InvalidRequestError, suggestion
from lancelake.expr.bind import BoundExpression, bind
from lancelake.expr.evaluate import Evaluator
from lancelake.expr.predicate import Filter
from lancelake.format.arrow_schema import public_field, storage_schema
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId
from lancelake.format.logical_types import described, described_schema, has_blobs, valued
from lancelake.format.schema import EXTENSION_NAME, Field, Schema, split_path
from lancelake.index.text.text_query import TextQuery
from lancelake.index.vector.vectors import ANY_DISTANCE, DistanceRange, Metric

DISTANCE = "_distance"
"""Column of the distance to the query."""
QUERY_INDEX = "query_index"
"""Column of the position of the query, when there are several."""
DEFAULT_K = 10
DEFAULT_RANK_CONSTANT = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nearest:
    """The `k` rows whose vectors are nearest to a query.

    Several `queries` of a column with one vector in each row are searched independently; of a
    multivector column they are one query of several vectors. Partitions between `minimum_nprobes`
    and `maximum_nprobes` of an index are searched: more than the minimum only to find `k` rows.
    With `refine_factor`, that many times `k` rows are re-ranked by their stored vectors.
    """

    column: str
    queries: npt.NDArray[np.float32]
    has_several: bool = False
    k: int = DEFAULT_K
    metric: Metric | None = None
    minimum_nprobes: int | None = None
    maximum_nprobes: int | None = None
    refine_factor: int | None = None
    use_index: bool = True
    ef: int | None = None
    effort: float | None = None
    """Share of the partitions, on a geometric scale, that are searched at first."""
    within: DistanceRange = ANY_DISTANCE

    def __post_init__(self) -> None:
        low, high = self.minimum_nprobes, self.maximum_nprobes
        if self.k <= 0:
            raise InvalidRequestError(f"Nearest-K must be > 0 but got {self.k}")
        if low is not None and low < 0:
            raise InvalidRequestError(f"Minimum nprobes must be >= 0 but got {low}")
        if high is not None and high < 0:
            raise InvalidRequestError(f"Maximum nprobes must be >= 0 but got {high}")
        if low is not None and high is not None and low > high:
            raise InvalidRequestError("minimum_nprobes must be <= maximum_nprobes")
        if self.refine_factor is not None and self.refine_factor < 1:
            problem = f"Refine factor must be 1 or more got {self.refine_factor}"
            raise InvalidRequestError(problem)
        if self.ef is not None and self.ef <= 0:
            raise InvalidRequestError(f"ef must be > 0 but got {self.ef}")


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

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 0:
            raise InvalidRequestError("Limit must be non-negative", limit=self.limit)
        if self.offset is not None and self.offset < 0:
            raise InvalidRequestError("Offset must be non-negative", offset=self.offset)
        if self.batch_size is not None and not 1 <= self.batch_size <= _MAX_BATCH_ROWS:
            problem = f"batch_size must be between 1 and {_MAX_BATCH_ROWS}, got {self.batch_size}"
            raise InvalidRequestError(problem, batch_size=self.batch_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReciprocalRankFusion:
    """Relevance is the sum of `1 / (constant + rank)` over the searches that found a row.

    Ranks start at 1. A greater constant reduces the weight of the first ranks.
    """

    constant: int = DEFAULT_RANK_CONSTANT

    def __post_init__(self) -> None:
        if self.constant < 0:
            problem = f"the rank constant must not be negative, got {self.constant}"
            raise InvalidRequestError(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedScore:
    """Relevance is `weight * similarity + (1 - weight) * score`, each between 0 and 1.

    The similarity falls linearly with the distance, from 1 for the nearest to 0 for the farthest
    row that the vector search found. The score is divided by the best one. A row that a search did
    not find has 0 of it.
    """

    vector_weight: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.vector_weight) and 0 <= self.vector_weight <= 1):
            problem = f"the vector weight must be between 0 and 1, got {self.vector_weight}"
            raise InvalidRequestError(problem)


Fusion = ReciprocalRankFusion | WeightedScore


def fusion_of(vector_weight: float | None, rank_constant: int | None = None) -> Fusion | None:
    """Return the fusion that one of two options asks for; None without them."""
    if vector_weight is None:
        return None if rank_constant is None else ReciprocalRankFusion(constant=rank_constant)
    if rank_constant is not None:
        problem = "a rank constant has no effect with a vector weight; specify only one of them"
        raise InvalidRequestError(problem)
    return WeightedScore(vector_weight=float(vector_weight))


_LEAST_CANDIDATES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest(ScanRequest):
    """Request for the rows of a vector search, of a text search, or of both fused.

    The filter is applied before the search unless `prefilter` is False.
    """

    nearest: Nearest | None = None
    """Vector search: only the nearest rows are returned, the nearest first."""
    text: TextQuery | None = None
    """Full text search: only matching rows are returned, the best first."""
    k: int = DEFAULT_K
    """Number of rows that `search` returns, instead of that of `nearest` and of the limit."""
    prefilter: bool = True
    """Whether a search considers only rows that match the filter; else its result is filtered."""
    search_filter: Nearest | TextQuery | None = None
    """A second search: only rows that it finds too are returned."""
    hides_scores: bool = False
    """Whether no column of scores is added to the columns of the request."""
    candidates: int | None = None
    """Number of rows of each search of a hybrid one, which are fused."""
    fusion: Fusion | None = None
    """Fusion of a hybrid search; None is that of reciprocal ranks."""

    def __post_init__(self) -> None:
        ScanRequest.__post_init__(self)
        if self.k <= 0:
            raise InvalidRequestError(f"k must be > 0 but got {self.k}")
        if not self.is_hybrid and (self.fusion is not None or self.candidates is not None):
            problem = "only a search by text and vector is fused; specify both queries"
            raise InvalidRequestError(problem)
        if self.candidates is not None and self.candidates < self.k:
            problem = f"candidates must not be fewer than k ({self.k}), got {self.candidates}"
            raise InvalidRequestError(problem)

    @property
    def is_hybrid(self) -> bool:
        """Whether the results of two searches are fused."""
        return self.nearest is not None and self.text is not None

    @property
    def rows_per_search(self) -> int:
        """Number of rows that each search returns: more than `k` if they are fused."""
        if not self.is_hybrid:
            return self.k
        return self.candidates or max(_LEAST_CANDIDATES, 2 * self.k)

    def limited(self) -> SearchRequest:
        """Return the request with the number of rows that each search returns as its limits."""
        if self.nearest is None and self.text is None:
            raise InvalidRequestError("a search needs a query vector, a text, or both")
        count = self.rows_per_search
        nearest = None if self.nearest is None else replace(self.nearest, k=count)
        return replace(self, nearest=nearest, limit=None if self.text is None else count)


BINARY_JSON = b"lance.json"
"""Extension name of stored JSON."""

_SCHEMAS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOutput:
    """The value at a path of the schema; `shown` is the field with its blobs described."""

    name: str
    path: tuple[str, ...]
    shown: Field

    def stored_blobs(self, schema: Schema) -> Field | None:
        """Return the stored field if it is or contains a blob."""
        trail = _exact(schema, self.path)
        return trail[-1] if trail is not None and has_blobs(trail[-1]) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaOutput:
    """A column computed from the position of a row."""

    name: str
    meta: MetaColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionOutput:
    """The value of a SQL expression."""

    name: str
    expression: BoundExpression


Output = ColumnOutput | MetaOutput | ExpressionOutput


def resolve_outputs(schema: Schema, request: ScanRequest) -> tuple[Output, ...]:
    """Resolve the request's columns to outputs; names must be unique."""
    requested = _resolve(schema, request.columns)
    seen: set[str] = set()
    for output in requested:
        if output.name in seen:
            raise InvalidRequestError(f"Duplicate column name: {output.name}", column=output.name)
        seen.add(output.name)
    if request.json_binary:
        requested = [_with_binary_json(output) for output in requested]
    metas = [MetaColumn.ROW_ID] if request.with_row_id else []
    metas += [MetaColumn.ROW_ADDRESS] if request.with_row_address else []
    last = [MetaOutput(name=meta.value, meta=meta) for meta in metas]
    # Requested by name and by flag, they are returned once, at the position of the flag.
    return tuple(output for output in requested if output not in last) + tuple(last)


def output_schema(
    outputs: Sequence[Output], schema: Schema, *, blob_values: bool = False
) -> pa.Schema:
    """Return the Arrow schema that users see for some outputs."""
    if not blob_values and tuple(outputs) == _all_columns(schema):
        return _all_fields(schema)
    return _arrow_schema(outputs, schema, blob_values=blob_values)


def output_field(output: Output, schema: Schema, *, blob_values: bool = False) -> pa.Field:
    """Return the Arrow field that users see for an output."""
    if isinstance(output, MetaOutput):
        return pa.field(output.name, META_TYPE)
    if isinstance(output, ColumnOutput):
        shown = output.shown
        if blob_values and (stored := output.stored_blobs(schema)) is not None:
            shown = valued(stored)
        return public_field(shown).with_name(output.name)
    return Evaluator(output.expression).result_field(output.name, expression_schema(schema))


@cached_by_identity(_SCHEMAS)
def expression_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema that expressions are evaluated on, with metadata columns."""
    fields = [pa.field(name, META_TYPE) for name in META_NAMES]
    return pa.schema([*storage_schema(described_schema(schema)), *fields])


def _resolve(schema: Schema, columns: Sequence[str] | FrozenMap[str, str] | None) -> list[Output]:
    if columns is None:
        return list(_all_columns(schema))
    if isinstance(columns, FrozenMap):
        return [_resolve_sql(schema, name, sql) for name, sql in columns.items()]
    return [_resolve_name(schema, name) for name in columns]


@cached_by_identity(_SCHEMAS)
def _all_columns(schema: Schema) -> tuple[ColumnOutput, ...]:
    return tuple(
        ColumnOutput(name=f.name, path=(f.name,), shown=described(f)) for f in schema.fields
    )


@cached_by_identity(_SCHEMAS)
def _all_fields(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of all columns."""
    return _arrow_schema(_all_columns(schema), schema, blob_values=False)


def _arrow_schema(outputs: Sequence[Output], schema: Schema, *, blob_values: bool) -> pa.Schema:
    fields = [output_field(output, schema, blob_values=blob_values) for output in outputs]
    return pa.schema(fields, metadata=dict(schema.metadata) or None)


def _resolve_name(schema: Schema, name: str) -> Output:
    if name in META_NAMES and not any(f.name == name for f in schema.fields):
        return MetaOutput(name=name, meta=MetaColumn(name))
    trail = _exact(schema, (name,)) or _exact(schema, split_path(name))
    if trail is None:
        problem = f"Schema error: No field named {name}"
        advice = suggestion(name, schema.names, "columns")
        raise InvalidRequestError(problem, column=name, action=advice)
    for parent in trail[:-1]:
        if parent.logical_type != "struct":
            problem = f"column {name} is inside {parent.name}, which is not a struct"
            raise InvalidRequestError(problem, column=name)
    return ColumnOutput(name=name, path=tuple(f.name for f in trail), shown=described(trail[-1]))


def _exact(schema: Schema, segments: tuple[str, ...]) -> tuple[Field, ...] | None:
    level = schema.fields
    trail: list[Field] = []
    for segment in segments:
        node = next((f for f in level if f.name == segment), None)
        if node is None:
            return None
        trail.append(node)
        level = node.children
    return tuple(trail)


def _resolve_sql(schema: Schema, name: str, sql: str) -> Output:
    if any(f.name == sql for f in schema.fields):
        return _resolve_name(schema, sql) if name == sql else _rename(schema, name, sql)
    if sql in META_NAMES:
        return MetaOutput(name=name, meta=MetaColumn(sql))
    return ExpressionOutput(name=name, expression=bind(sql, schema, extra_names=META_NAMES))


def _with_binary_json(output: Output) -> Output:
    if not isinstance(output, ColumnOutput) or not output.shown.is_json:
        return output
    metadata = FrozenMap({**output.shown.metadata, EXTENSION_NAME: BINARY_JSON})
    stored = replace(output.shown, logical_type="large_binary", metadata=metadata)
    return replace(output, shown=stored)


def _rename(schema: Schema, name: str, column: str) -> Output:
    field = next(f for f in schema.fields if f.name == column)
    return ColumnOutput(name=name, path=(column,), shown=described(field))
