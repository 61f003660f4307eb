"""Batch search and kNN join: many query vectors searched by Spark tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.data.row_meta import MetaColumn
from lancelake.engine import wire
from lancelake.errors import InvalidRequestError
from lancelake.memwal.pinned import PinnedView, pin
from lancelake.memwal.search import ensure_searchable, pinned_search
from lancelake.memwal.view import Freshness
from lancelake.scan.nearest import DISTANCE, QUERY_INDEX
from lancelake.scan.prepared import prepare
from lancelake.scan.request import ScanRequest
from lancelake.scan.scored_rows import rows_at
from lancelake.scan.search.batch import batch_tasks, ensure_batch
from lancelake.scan.search.found_rows import ADDRESS, FOUND, SEGMENT, STORED_ID
from lancelake.scan.search.merged import merged_in_order
from lancelake.scan.search.query_tasks import BatchSearch
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.reading.spark_values import SparkConformer
from lancelake.spark.search.queries import Matrix, query_matrix
from lancelake.spark.types import arrow_schema
from lancelake.spark.worker.on_executors import portable

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
    spark: SparkSession, search: BatchSearch, schema: t.StructType, freshness: str | None = None
) -> DataFrame:
    """Return the nearest rows of each query, with the columns of a result.

    Tasks search their share and return the address and distance of rows; only these are shuffled,
    once, to select the nearest ones of each query. Vectors of candidates and columns are read
    where the selected rows are. With a freshness, each task searches for some of the queries in
    the table and in the MemWAL.
    """
    index = t.StructField(QUERY_INDEX, t.LongType(), nullable=False)
    whole = t.StructType([index, *schema.fields])
    output = _Output.of(search, schema, freshness)
    if output.view is not None:
        ensure_batch(search)
        queries = search.nearest.queries
        count = min(SparkEngine(spark).parallelism, len(queries))
        bounds = np.linspace(0, len(queries), count + 1).astype(int).tolist()
        numbers = spark.range(0, count, 1, max(1, count))
        return numbers.mapInArrow(portable(_SearchView(output, tuple(bounds))), whole)
    parallelism = SparkEngine(spark).parallelism
    tasks = batch_tasks(search, parallelism)
    run = _SearchTasks(wire.dumps(tasks))
    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks)))
    if not any(task.is_partial for task in tasks):
        return numbers.mapInArrow(portable(_SearchAndFetch(run, _FetchColumns(output))), whole)
    found = numbers.mapInArrow(portable(run), _FOUND)
    found = found.repartition(parallelism, QUERY_INDEX).sortWithinPartitions(QUERY_INDEX)
    return found.mapInArrow(portable(_MergeAndFetch(_FetchColumns(output.merging))), whole)


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

    @staticmethod
    def of(search: BatchSearch, schema: t.StructType, freshness: str | None) -> _Output:
        arrow, view = arrow_schema(schema), None
        if freshness is not None:
            with_row_id = MetaColumn.ROW_ID.value in arrow.names
            ensure_searchable(with_row_id=with_row_id, prefilter=search.prefilter)
            view = pin(search.snapshot, Freshness.named(freshness))
        return _Output(search=search, schema=arrow, view=view)

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
        with prepare(search.snapshot, request).run() as found:
            yield from found


@dataclass(frozen=True, slots=True)
class _SearchTasks:
    tasks: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tasks = wire.loads(self.tasks)
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
                yield self._fetched(batch.slice(start, _ROWS_AT_ONCE))

    def _fetched(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        addresses = batch.column(ADDRESS).to_numpy().astype(np.uint64)
        rows = rows_at(self.output.search.snapshot, addresses, self.output.request)
        rows = rows.append_column(DISTANCE, batch.column(DISTANCE))
        return _beside(batch.select([QUERY_INDEX]), rows, self.output.schema)


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
                yield from self._joined(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            yield from self._joined(pa.Table.from_batches(waiting))

    def _joined(self, left: pa.Table) -> Iterator[pa.RecordBatch]:
        left = left.filter(left.column(self.vectors).is_valid())
        for start in range(0, left.num_rows, _QUERIES_AT_ONCE):
            yield from self._nearest(left.slice(start, _QUERIES_AT_ONCE))

    def _nearest(self, left: pa.Table) -> Iterator[pa.RecordBatch]:
        for rows in self.output.nearest(query_matrix(left.column(self.vectors))):
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
                    index = pa.record_batch([pa.array(places)], names=[QUERY_INDEX])
                    yield _beside(index, pa.Table.from_batches([rows]), self.output.schema)


def _beside(left: pa.RecordBatch, right: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of two batches side by side, the right ones in the types of a schema."""
    (rows,) = right.combine_chunks().to_batches()
    rows = SparkConformer(schema)(rows.select(schema.names))
    fields = [*left.schema, *schema]
    return pa.RecordBatch.from_arrays([*left.columns, *rows.columns], schema=pa.schema(fields))
