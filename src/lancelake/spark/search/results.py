"""Columns of search results, and results of the driver as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.row_meta import MetaColumn
from lancelake.errors import InvalidRequestError
from lancelake.memwal.search import ViewSearch
from lancelake.memwal.view import Freshness, open_view
from lancelake.scan.nearest import DISTANCE
from lancelake.scan.search.request import SearchRequest
from lancelake.scan.search.run import RELEVANCE, search
from lancelake.scan.text_search.plan import SCORE
from lancelake.spark.reading.spark_values import SparkConformer
from lancelake.spark.types import arrow_schema, shown_schema, supported_schema
from lancelake.suggest import suggestion

DISTANCE_FIELD = t.StructField(DISTANCE, t.FloatType())
_ROW_ID = t.StructField(MetaColumn.ROW_ID.value, t.LongType())


@names_table
def table_fields(snapshot: Snapshot, columns: Sequence[str] | None) -> list[t.StructField]:
    """Return the fields of columns; by default, of all that Spark supports."""
    schema = snapshot.manifest.schema
    if columns is None:
        return list(shown_schema(schema).fields)
    known = {field.name: field for field in supported_schema(schema).fields}
    for name in columns:
        if name not in known:
            advice = suggestion(name, tuple(known), "columns")
            raise InvalidRequestError(f"there is no column {name!r}", column=name, action=advice)
    return [known[name] for name in columns]


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


def searched_frame(
    spark: SparkSession,
    snapshot: Snapshot,
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
    schema = result_schema(snapshot, columns, scores, with_row_id=request.with_row_id)
    names = tuple(field.name for field in table_fields(snapshot, columns))
    if freshness is None:
        found = search(snapshot, replace(request, columns=names))
    else:
        view = open_view(snapshot, Freshness.named(freshness))
        found = ViewSearch(view=view, columns=names, filter=request.filter).search(request)
    return local_frame(spark, found, schema)


def local_frame(spark: SparkSession, rows: pa.Table, schema: t.StructType) -> DataFrame:
    """Return rows of the driver as a DataFrame."""
    target = arrow_schema(schema)
    conform = SparkConformer(target)
    batches = [conform(batch) for batch in rows.combine_chunks().to_batches()]
    return spark.createDataFrame(pa.Table.from_batches(batches, target), schema)
