"""Search methods of `LanceTable`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Unpack

from pyspark.sql import DataFrame, SparkSession

from lancelake.commit.snapshot import Snapshot
from lancelake.scan.nearest import DEFAULT_K, DISTANCE
from lancelake.scan.search.fusion import fusion_of
from lancelake.scan.search.query_tasks import BatchSearch
from lancelake.scan.search.request import SearchRequest, vector_column, words_query
from lancelake.spark.search.batch import batch_frame, join_frame
from lancelake.spark.search.queries import (
    VectorOptions,
    array_column,
    nearest_of,
    one_vector,
    query_matrix,
)
from lancelake.spark.search.results import result_schema, searched_frame


class TableSearch(ABC):
    """Search methods of a table.

    A `filter` is SQL of the table format, as in `LanceDataset.to_table`; it is applied before the
    search unless `prefilter` is False. `columns` are those of the table to return, all by default.
    `vectorColumn` is the column to search, by default the only vector column. With a `freshness`,
    `flushed` or `durable`, rows of the MemWAL take part. Further options are those of
    `VectorOptions`.
    """

    _spark: SparkSession

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Open the newest version."""

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
        to keep their columns, use `knnJoin`.

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
        base = self.snapshot()
        column = vector_column(base, vectorColumn)
        if not isinstance(queries, DataFrame):
            request = SearchRequest(
                nearest=nearest_of(column, one_vector(queries), k, **options),
                k=k,
                filter=filter,
                prefilter=prefilter,
                with_row_id=withRowId,
            )
            return searched_frame(self._spark, base, request, columns, freshness)
        vectors = queries.select(array_column(queries, queryColumn)).toArrow().column(0)
        nearest = nearest_of(column, query_matrix(vectors), k, **options)
        search = BatchSearch(snapshot=base, nearest=nearest, filter=filter, prefilter=prefilter)
        schema = result_schema(base, columns, [DISTANCE], with_row_id=withRowId)
        return batch_frame(self._spark, search, schema, freshness)

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
        base = self.snapshot()
        column = vector_column(base, vectorColumn)
        vectors = array_column(left, leftColumn)
        nearest = nearest_of(column, one_vector([0.0]), k, **options)
        search = BatchSearch(snapshot=base, nearest=nearest, filter=filter, prefilter=prefilter)
        schema = result_schema(base, columns, [DISTANCE], with_row_id=withRowId)
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
        return searched_frame(self._spark, self.snapshot(), request, columns, freshness)

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
        base = self.snapshot()
        column = vector_column(base, vectorColumn)
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
        return searched_frame(self._spark, base, request, columns, freshness)
