"""Search of many vectors on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.core.table import Table
from lancelake.core.values.reads import (
    ADDRESS,
    DISTANCE,
    FOUND,
    QUERY_INDEX,
    SEGMENT,
    STORED_ID,
    BatchSearch,
    DistanceRange,
    MetaColumn,
    Nearest,
    ScanRequest,
    batch_tasks,
    ensure_batch,
    merged_in_order,
    metric_named,
    rows_at,
)
from lancelake.core.values.tasks import port
from lancelake.core.values.wal import Freshness, PinnedView, ensure_searchable, pinned_search
from lancelake.errors import InvalidRequestError
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.tasks.columns import SparkConformer
from lancelake.spark.tasks.on_executors import portable
from lancelake.spark.values.spark_types import arrow_schema

Matrix = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

_NULL_VALUE = "query vectors must not contain nulls"


class VectorOptions(TypedDict, total=False):
    """Options of a vector search."""

    metric: str | None
    nprobes: int | None
    refineFactor: int | None
    ef: int | None
    useIndex: bool
    distanceRange: tuple[float | None, float | None]


def nearest_of(
    column: str,
    queries: Matrix,
    k: int,
    *,
    metric: str | None = None,
    nprobes: int | None = None,
    refineFactor: int | None = None,
    ef: int | None = None,
    useIndex: bool = True,
    distanceRange: tuple[float | None, float | None] = (None, None),
) -> Nearest:
    """Return a vector search; the options are those of `VectorOptions`."""
    if nprobes is not None and nprobes <= 0:
        raise InvalidRequestError(f"nprobes must be > 0 but got {nprobes}")
    return Nearest(
        column=column,
        queries=queries,
        k=k,
        metric=None if metric is None else metric_named(metric),
        minimum_nprobes=nprobes,
        maximum_nprobes=nprobes,
        refine_factor=refineFactor,
        ef=ef,
        use_index=useIndex,
        within=DistanceRange(*distanceRange),
    )


def one_vector(values: Sequence[float]) -> Matrix:
    """Return a single query vector."""
    try:
        numbers = list(values)
        vector = np.asarray(numbers, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError("a query vector is a list of numbers") from error
    if any(number is None for number in numbers):
        raise InvalidRequestError(_NULL_VALUE)
    if vector.ndim != 1 or not vector.size:
        raise InvalidRequestError("a query vector is a list of numbers")
    return vector.reshape(1, -1)


def array_column(frame: DataFrame, name: str | None) -> str:
    """Return the column of query vectors: the only array column of a frame if none is named."""
    if name is not None:
        if name not in frame.columns:
            raise InvalidRequestError(f"the queries have no column {name!r}")
        return name
    arrays = [f.name for f in frame.schema.fields if isinstance(f.dataType, t.ArrayType)]
    if len(arrays) == 1:
        return arrays[0]
    problem = "the queries have no array column"
    if arrays:
        problem = f"the queries have several array columns; name one of: {', '.join(arrays)}"
    raise InvalidRequestError(problem)


def query_matrix(column: pa.Array | pa.ChunkedArray) -> tuple[Matrix, Positions]:
    """Return the query vectors of a column, one per row, and their positions in it.

    A null has no nearest rows, and is left out. Vectors of different lengths are refused.
    """
    places = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    values = column.drop_null()
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not len(values):
        return np.zeros((0, 0), dtype=np.float32), places
    lengths = np.unique(values.value_lengths().to_numpy(zero_copy_only=False))
    if len(lengths) > 1:
        shown = " and ".join(map(str, lengths.tolist()))
        raise InvalidRequestError(f"query vectors must have the same length, but got {shown}")
    flat = values.flatten()
    if flat.null_count:
        raise InvalidRequestError(_NULL_VALUE)
    try:
        numbers: Matrix = flat.to_numpy(zero_copy_only=False).astype(np.float32)
    except (TypeError, ValueError) as error:
        problem = f"query vectors must be arrays of numbers, not of {flat.type}"
        raise InvalidRequestError(problem) from error
    return numbers.reshape(len(values), int(lengths[0])), places


_FOUND = t.StructType(
    [
        t.StructField(QUERY_INDEX, t.LongType(), nullable=False),
        t.StructField(SEGMENT, t.IntegerType(), nullable=False),
        t.StructField(STORED_ID, t.LongType(), nullable=False),
        t.StructField(ADDRESS, t.LongType(), nullable=False),
        t.StructField(DISTANCE, t.FloatType(), nullable=False),
    ]
)
_ROWS_AT_ONCE = 1 << 14
# A scan of the table is shared by so many queries.
_QUERIES_AT_ONCE = 1 << 12


def batch_frame(
    spark: SparkSession,
    search: BatchSearch,
    positions: Positions,
    schema: t.StructType,
    freshness: str | None = None,
) -> DataFrame:
    """Return the nearest rows of each query, with the columns of a result.

    `positions` are those of the queries in what the user asked, the index of a query in the result.

    Tasks search their share and return the address and distance of rows; only these are shuffled,
    once, to select the nearest ones of each query. Vectors of candidates and columns are read
    where the selected rows are. With a freshness, each task searches for some of the queries in
    the table and in the MemWAL.
    """
    index = t.StructField(QUERY_INDEX, t.LongType(), nullable=False)
    whole = t.StructType([index, *schema.fields])
    output = _Output.of(search, schema, freshness, positions)
    if output.view is not None:
        ensure_batch(search)
        queries = search.nearest.queries
        count = min(SparkEngine(spark).parallelism, len(queries))
        bounds = np.linspace(0, len(queries), count + 1).astype(int).tolist()
        numbers = spark.range(0, count, 1, max(1, count))
        return numbers.mapInArrow(portable(_SearchView(output, tuple(bounds))), whole)
    parallelism = SparkEngine(spark).parallelism
    tasks = batch_tasks(search, parallelism)
    run = _SearchTasks(port.dumps(tasks))
    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks)))
    if not any(task.is_partial for task in tasks):
        return numbers.mapInArrow(portable(_SearchAndFetch(run, _FetchColumns(output))), whole)
    parts = numbers.mapInArrow(portable(run), _FOUND)
    parts = parts.repartition(parallelism, QUERY_INDEX).sortWithinPartitions(QUERY_INDEX)
    return parts.mapInArrow(portable(_MergeAndFetch(_FetchColumns(output.merging))), whole)


def join_frame(
    left: DataFrame,
    vectors: str,
    search: BatchSearch,
    schema: t.StructType,
    freshness: str | None = None,
) -> DataFrame:
    """Return each row of a frame with each of its nearest rows; no row is shuffled."""
    ensure_batch(search)
    names = {field.name.lower() for field in left.schema.fields}
    both = [field.name for field in schema.fields if field.name.lower() in names]
    if both:
        raise InvalidRequestError(
            f"both sides of the join have a column {both[0]!r}",
            action="Rename it on the left side, or select other columns of the table.",
        )
    join = _JoinNearest(_Output.of(search, schema, freshness), vectors)
    return left.mapInArrow(portable(join), t.StructType([*left.schema.fields, *schema.fields]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Output:
    """The search of a result, its stored columns, and its schema."""

    search: BatchSearch
    schema: pa.Schema
    view: PinnedView | None
    """The table with its MemWAL, if rows that are not merged take part."""

    positions: Positions | None
    """The index of each query in the result, if it has one."""

    @staticmethod
    def of(
        search: BatchSearch,
        schema: t.StructType,
        freshness: str | None,
        positions: Positions | None = None,
    ) -> _Output:
        arrow, view = arrow_schema(schema), None
        if freshness is not None:
            with_row_id = MetaColumn.ROW_ID.value in arrow.names
            ensure_searchable(with_row_id=with_row_id, prefilter=search.prefilter)
            view = Table(search.snapshot).wal.pin(Freshness.named(freshness))
        return _Output(search=search, schema=arrow, view=view, positions=positions)

    @property
    def merging(self) -> _Output:
        """What merges of partial results need: the vectors only to refine distances."""
        nearest = self.search.nearest
        if nearest.refine_factor is not None:
            return self
        without = replace(nearest, queries=nearest.queries[:0])
        return replace(self, search=replace(self.search, nearest=without))

    @property
    def request(self) -> ScanRequest:
        """Request for the stored columns, and for the row id if it is among them."""
        names = [name for name in self.schema.names if name != DISTANCE]
        return ScanRequest(columns=tuple(names))

    def query_index(self, queries: Positions) -> pa.RecordBatch:
        """Return the column with the index of these queries in the result."""
        index = queries if self.positions is None else self.positions[queries]
        return pa.record_batch([pa.array(index)], names=[QUERY_INDEX])

    def nearest(self, queries: Matrix) -> Iterator[pa.RecordBatch]:
        """Yield the nearest rows of each query."""
        search = self.search
        several = replace(search.nearest, queries=queries, has_several=True)
        columns = cast("tuple[str, ...]", self.request.columns)
        if self.view is not None:
            view = pinned_search(self.view, columns, cast("str | None", search.filter))
            yield from view.nearest(several).to_batches()
            return
        request = replace(search.request(several), with_row_address=False, columns=columns)
        with Table(search.snapshot).scan(request).run() as rows:
            yield from rows


@dataclass(frozen=True, slots=True)
class _SearchTasks:
    tasks: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tasks = port.loads(self.tasks)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from tasks[number].run().cast(FOUND).to_batches()


@dataclass(frozen=True, slots=True)
class _FetchColumns:
    """Reads the columns of the rows of the result."""

    output: _Output

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                yield self._fetch(batch.slice(start, _ROWS_AT_ONCE))

    def _fetch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        addresses = batch.column(ADDRESS).to_numpy().astype(np.uint64)
        rows = rows_at(self.output.search.snapshot, addresses, self.output.request)
        rows = rows.append_column(DISTANCE, batch.column(DISTANCE))
        index = self.output.query_index(batch.column(QUERY_INDEX).to_numpy())
        return _beside(index, rows, self.output.schema)


@dataclass(frozen=True, slots=True)
class _SearchAndFetch:
    """Runs tasks whose rows are those of the result."""

    search: _SearchTasks
    fetch: _FetchColumns

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.fetch(self.search(batches))


@dataclass(frozen=True, slots=True)
class _MergeAndFetch:
    """Merges the rows that partial tasks found, ordered by their queries."""

    fetch: _FetchColumns

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.fetch(merged_in_order(self.fetch.output.search, batches))


@dataclass(frozen=True, slots=True)
class _JoinNearest:
    """Searches the vectors of rows, some thousand at once."""

    output: _Output
    vectors: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= _QUERIES_AT_ONCE:
                yield from self._join(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            yield from self._join(pa.Table.from_batches(waiting))

    def _join(self, left: pa.Table) -> Iterator[pa.RecordBatch]:
        for start in range(0, left.num_rows, _QUERIES_AT_ONCE):
            yield from self._nearest(left.slice(start, _QUERIES_AT_ONCE))

    def _nearest(self, left: pa.Table) -> Iterator[pa.RecordBatch]:
        queries, places = query_matrix(left.column(self.vectors))
        if not len(places):
            return
        left = left.take(places)
        for rows in self.output.nearest(queries):
            (sources,) = left.take(rows.column(QUERY_INDEX)).combine_chunks().to_batches()
            yield _beside(sources, pa.Table.from_batches([rows]), self.output.schema)


@dataclass(frozen=True, slots=True)
class _SearchView:
    """Searches for some of the queries of a batch, between two bounds."""

    output: _Output
    bounds: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        queries = self.output.search.nearest.queries
        for batch in batches:
            for number in batch.column(0).to_pylist():
                first, stop = self.bounds[number], self.bounds[number + 1]
                for rows in self.output.nearest(queries[first:stop]):
                    places = rows.column(QUERY_INDEX).to_numpy().astype(np.int64) + first
                    index = self.output.query_index(places)
                    yield _beside(index, pa.Table.from_batches([rows]), self.output.schema)


def _beside(left: pa.RecordBatch, right: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of two batches side by side, the right ones in the types of a schema."""
    (rows,) = right.combine_chunks().to_batches()
    rows = SparkConformer(schema)(rows.select(schema.names))
    fields = [*left.schema, *schema]
    return pa.RecordBatch.from_arrays([*left.columns, *rows.columns], schema=pa.schema(fields))
