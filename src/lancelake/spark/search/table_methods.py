"""Search methods of `LanceTable`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Unpack

from pyspark.sql import DataFrame, SparkSession

from lancelake.commit.snapshot import Snapshot
from lancelake.scan.nearest import DEFAULT_K, DISTANCE
from lancelake.scan.search.batch import BatchSearch
from lancelake.scan.search.fusion import fusion_of
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
        collected on the driver, are searched by tasks; `query_index` is the position of the query
        in the DataFrame. For more queries than fit on the driver, or to keep their columns, use
        `knnJoin`.
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

        A text in double quotes is a phrase. All columns with a text index are searched by default.
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

        The result has `_distance`, `_score` and `_relevance_score`: by reciprocal ranks, or with a
        `vectorWeight` by weighted scores.
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
