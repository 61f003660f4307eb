"""Search methods of `LanceTable`, and procedures that search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.core.table import Table
from lancelake.core.values.metadata import Snapshot, comma_parts
from lancelake.core.values.reads import (
    DEFAULT_K,
    DISTANCE,
    RELEVANCE,
    SCORE,
    BatchSearch,
    MetaColumn,
    SearchRequest,
    fusion_of,
    words_query,
)
from lancelake.core.values.wal import Freshness, ViewSearch
from lancelake.errors import InvalidRequestError, suggestion
from lancelake.spark.jobs.batch_search import (
    VectorOptions,
    array_column,
    batch_frame,
    join_frame,
    nearest_of,
    one_vector,
    query_matrix,
)
from lancelake.spark.sql.procedures import SparkTable, TableAccess, procedure
from lancelake.spark.tasks.columns import SparkConformer
from lancelake.spark.values.spark_types import (
    arrow_schema,
    nullable_schema,
    shown_schema,
    supported_schema,
)

_ROW_ID = t.StructField(MetaColumn.ROW_ID.value, t.LongType())


def table_fields(snapshot: Snapshot, columns: Sequence[str] | None) -> list[t.StructField]:
    """Return the fields of columns; by default, of all that Spark supports.

    All are nullable: rows of the MemWAL may be older than a column.
    """
    schema = snapshot.manifest.schema
    if columns is None:
        return list(nullable_schema(shown_schema(schema)).fields)
    fields = {field.name: field for field in nullable_schema(supported_schema(schema)).fields}
    for name in columns:
        if name not in fields:
            raise InvalidRequestError(
                f"there is no column {name!r}",
                table=snapshot.location.uri,
                version=snapshot.version,
                column=name,
                action=suggestion(name, tuple(fields), "columns"),
            )
    return [fields[name] for name in columns]


def result_schema(
    snapshot: Snapshot,
    columns: Sequence[str] | None,
    scores: Sequence[str],
    *,
    with_row_id: bool = False,
) -> t.StructType:
    """Return the schema of a result: columns of the table, scores, and the row id if wanted."""
    added = [t.StructField(name, t.FloatType()) for name in scores]
    added += [_ROW_ID] if with_row_id else []
    return t.StructType([*table_fields(snapshot, columns), *added])


def search_frame(
    spark: SparkSession,
    table: Table,
    request: SearchRequest,
    columns: Sequence[str] | None = None,
    freshness: str | None = None,
) -> DataFrame:
    """Search on the driver, without a job, and return the rows, the best first.

    With a freshness, rows of the MemWAL take part.
    """
    scores = [] if request.nearest is None else [DISTANCE]
    scores += [] if request.text is None else [SCORE]
    scores += [RELEVANCE] if request.is_hybrid else []
    schema = result_schema(table.snapshot, columns, scores, with_row_id=request.with_row_id)
    names = tuple(field.name for field in table_fields(table.snapshot, columns))
    if freshness is None:
        rows = table.search(replace(request, columns=names))
    else:
        view = table.wal.view(Freshness.named(freshness))
        rows = ViewSearch(view=view, columns=names, filter=request.filter).search(request)
    return local_frame(spark, rows, schema)


def local_frame(spark: SparkSession, rows: pa.Table, schema: t.StructType) -> DataFrame:
    """Return rows of the driver as a DataFrame."""
    target = arrow_schema(schema)
    conform = SparkConformer(target)
    batches = [conform(batch) for batch in rows.combine_chunks().to_batches()]
    # Spark refuses columns without chunks, as those of a table of no batches are.
    table = pa.Table.from_batches(batches, target) if batches else target.empty_table()
    return spark.createDataFrame(table, schema)


@procedure("returns the nearest rows", None)
def vector_search(  # the options of the search
    table: SparkTable,
    vector: Sequence[float],
    k: int = DEFAULT_K,
    *,
    columns: str | None = None,
    filter: str | None = None,
    freshness: str | None = None,
    vector_column: str | None = None,
    metric: str | None = None,
    nprobes: int | None = None,
    refine_factor: int | None = None,
) -> DataFrame:
    """Search one vector column."""
    base = table.open()
    options = VectorOptions(metric=metric, nprobes=nprobes, refineFactor=refine_factor)
    column = base.vector_column(vector_column)
    nearest = nearest_of(column, one_vector(vector), k, **options)
    request = SearchRequest(nearest=nearest, k=k, filter=filter)
    return search_frame(table.spark, base, request, _names(columns), freshness)


@procedure("returns rows with a text", None)
def text_search(
    table: SparkTable,
    text: str,
    k: int = DEFAULT_K,
    *,
    columns: str | None = None,
    filter: str | None = None,
    freshness: str | None = None,
    text_columns: str | None = None,
) -> DataFrame:
    """Search columns with a text index."""
    words = words_query(text, _names(text_columns))
    request = SearchRequest(text=words, k=k, filter=filter)
    return search_frame(table.spark, table.open(), request, _names(columns), freshness)


@procedure("returns the best rows of a text search and a vector search", None)
def hybrid_search(  # noqa: PLR0913  # the options of both searches
    table: SparkTable,
    text: str,
    vector: Sequence[float],
    k: int = DEFAULT_K,
    *,
    columns: str | None = None,
    filter: str | None = None,
    freshness: str | None = None,
    vector_column: str | None = None,
    metric: str | None = None,
    nprobes: int | None = None,
    refine_factor: int | None = None,
    text_columns: str | None = None,
    vector_weight: float | None = None,
) -> DataFrame:
    """Search one vector column, and columns with a text index."""
    base = table.open()
    options = VectorOptions(metric=metric, nprobes=nprobes, refineFactor=refine_factor)
    column = base.vector_column(vector_column)
    request = SearchRequest(
        nearest=nearest_of(column, one_vector(vector), k, **options),
        text=words_query(text, _names(text_columns)),
        k=k,
        filter=filter,
        fusion=fusion_of(vector_weight),
    )
    return search_frame(table.spark, base, request, _names(columns), freshness)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else list(comma_parts(text))


class TableSearch(TableAccess):
    """Search methods of a table.

    A `filter` is SQL of the table format, as in `LanceDataset.to_table`; it is applied before the
    search unless `prefilter` is False. `columns` are those of the table to return, all by default.
    `vectorColumn` is the column to search, by default the only vector column. With a `freshness`,
    `flushed` or `durable`, rows of the MemWAL take part. Further options are those of
    `VectorOptions`.
    """

    def search(
        self,
        queries: DataFrame | Sequence[float],
        vectorColumn: str | None = None,
        k: int = DEFAULT_K,
        *,
        queryColumn: str | None = None,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        prefilter: bool = True,
        withRowId: bool = False,
        freshness: str | None = None,
        **options: Unpack[VectorOptions],
    ) -> DataFrame:
        """Return the `k` rows nearest to a vector, or to each vector of a DataFrame.

        A single vector is searched on the driver, without a job. Vectors of a DataFrame, which are
        collected on the driver, are searched by tasks. For more queries than fit on the driver, or
        to keep their columns, use `knnJoin`. A null among them has no nearest rows.

        Args:
            queries: A vector, or a DataFrame with a column of vectors.
            vectorColumn: The column to search; by default the only vector column.
            k: Rows to return, at most, for each query.
            queryColumn: Column of the query vectors; by default the only array column.
            columns: Columns to return; by default all.
            filter: SQL of the table format, as in `LanceDataset.to_table`.
            prefilter: Apply the filter before the search instead of after it.
            withRowId: Add the column `_rowid`.
            freshness: `flushed` or `durable` to search rows of the MemWAL as well.
            **options: Options of `VectorOptions`, such as `metric` and `nprobes`.

        Returns:
            The rows with `_distance`, and `query_index` for a DataFrame: the position of the query.

        Raises:
            ColumnNotFoundError: The table has no such column.

        Examples:
            >>> [row.id for row in documents.search([0.0, 1.0], k=1, columns=["id"]).collect()]
            [2]
        """
        base = self._table.open()
        column = base.vector_column(vectorColumn)
        if not isinstance(queries, DataFrame):
            request = SearchRequest(
                nearest=nearest_of(column, one_vector(queries), k, **options),
                k=k,
                filter=filter,
                prefilter=prefilter,
                with_row_id=withRowId,
            )
            return search_frame(self._table.spark, base, request, columns, freshness)
        vectors = queries.select(array_column(queries, queryColumn)).toArrow().column(0)
        matrix, positions = query_matrix(vectors)
        nearest = nearest_of(column, matrix, k, **options)
        search = BatchSearch(
            snapshot=base.snapshot, nearest=nearest, filter=filter, prefilter=prefilter
        )
        schema = result_schema(base.snapshot, columns, [DISTANCE], with_row_id=withRowId)
        return batch_frame(self._table.spark, search, positions, schema, freshness)

    def knnJoin(
        self,
        left: DataFrame,
        leftColumn: str | None = None,
        vectorColumn: str | None = None,
        k: int = DEFAULT_K,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        prefilter: bool = True,
        withRowId: bool = False,
        freshness: str | None = None,
        **options: Unpack[VectorOptions],
    ) -> DataFrame:
        """Return each row of a DataFrame with each of the `k` rows nearest to its vector.

        Every task searches the vectors of its partition; neither side is shuffled. A row without a
        vector has no nearest rows, and is not in the result.

        Args:
            left: The DataFrame.
            leftColumn: Column of its vectors; by default the only array column.
            vectorColumn: The column to search; by default the only vector column.
            k: Rows to return for each row, at most.
            columns: Columns of the table to return; by default all.
            filter: SQL of the table format.
            prefilter: Apply the filter before the search instead of after it.
            withRowId: Add the column `_rowid`.
            freshness: `flushed` or `durable` to search rows of the MemWAL as well.
            **options: Options of `VectorOptions`.

        Returns:
            The joined rows.

        Examples:
            >>> rows = [("a", [0.0, 1.0])]
            >>> asked = spark.createDataFrame(rows, "question string, asked array<float>")
            >>> nearest = documents.knnJoin(asked, k=1, columns=["id"])
            >>> [(row.question, row.id) for row in nearest.collect()]
            [('a', 2)]
        """
        base = self._table.open()
        column = base.vector_column(vectorColumn)
        vectors = array_column(left, leftColumn)
        nearest = nearest_of(column, one_vector([0.0]), k, **options)
        search = BatchSearch(
            snapshot=base.snapshot, nearest=nearest, filter=filter, prefilter=prefilter
        )
        schema = result_schema(base.snapshot, columns, [DISTANCE], with_row_id=withRowId)
        return join_frame(left, vectors, search, schema, freshness)

    def textSearch(
        self,
        text: str,
        k: int = DEFAULT_K,
        *,
        textColumns: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        prefilter: bool = True,
        withRowId: bool = False,
        freshness: str | None = None,
    ) -> DataFrame:
        """Return the `k` rows with the best scores for the words of a text, without a job.

        Args:
            text: The words; a text in double quotes is a phrase.
            k: Rows to return, at most.
            textColumns: Columns to search; by default all with a text index.
            columns: Columns to return; by default all.
            filter: SQL of the table format.
            prefilter: Apply the filter before the search instead of after it.
            withRowId: Add the column `_rowid`.
            freshness: `flushed` or `durable` to search rows of the MemWAL as well.

        Returns:
            The rows with `_score`, best first.

        Raises:
            InvalidRequestError: No column has a text index.

        Examples:
            >>> created = documents.createIndex("text", "INVERTED")
            >>> [row.id for row in documents.textSearch("whale", columns=["id"]).collect()]
            [2]
        """
        request = SearchRequest(
            text=words_query(text, textColumns),
            k=k,
            filter=filter,
            prefilter=prefilter,
            with_row_id=withRowId,
        )
        return search_frame(self._table.spark, self._table.open(), request, columns, freshness)

    def hybridSearch(  # noqa: PLR0913  # the options of both searches
        self,
        text: str,
        vector: Sequence[float],
        vectorColumn: str | None = None,
        k: int = DEFAULT_K,
        *,
        textColumns: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        prefilter: bool = True,
        vectorWeight: float | None = None,
        rankConstant: int | None = None,
        candidates: int | None = None,
        withRowId: bool = False,
        freshness: str | None = None,
        **options: Unpack[VectorOptions],
    ) -> DataFrame:
        """Return the `k` best rows of a text search and a vector search, fused, without a job.

        Args:
            text: The words; a text in double quotes is a phrase.
            vector: The query vector.
            vectorColumn: The column to search; by default the only vector column.
            k: Rows to return, at most.
            textColumns: Columns to search; by default all with a text index.
            columns: Columns to return; by default all.
            filter: SQL of the table format.
            prefilter: Apply the filter before the search instead of after it.
            vectorWeight: Fuse by weighted scores; between 0 and 1.
            rankConstant: Fuse by reciprocal ranks with this constant, which is the default.
            candidates: Rows that each of the two searches contributes, at most.
            withRowId: Add the column `_rowid`.
            freshness: `flushed` or `durable` to search rows of the MemWAL as well.
            **options: Options of `VectorOptions`.

        Returns:
            The rows with `_distance`, `_score` and `_relevance_score`, best first.

        Examples:
            >>> created = documents.createIndex("text", "INVERTED")
            >>> found = documents.hybridSearch("panda", [1.0, 1.0], k=1, columns=["id"])
            >>> [row.id for row in found.collect()]
            [3]
        """
        base = self._table.open()
        column = base.vector_column(vectorColumn)
        request = SearchRequest(
            nearest=nearest_of(column, one_vector(vector), k, **options),
            text=words_query(text, textColumns),
            k=k,
            filter=filter,
            prefilter=prefilter,
            with_row_id=withRowId,
            candidates=candidates,
            fusion=fusion_of(vectorWeight, rankConstant),
        )
        return search_frame(self._table.spark, base, request, columns, freshness)
