"""SQL conditions as text, parsed and evaluated by Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyroaring import BitMap
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import MetaColumn
from lancelake.errors import InvalidExpressionError
from lancelake.format.ids import FragmentId
from lancelake.format.row_address import by_fragment
from lancelake.spark.jobs.partition_job import on_partitions
from lancelake.spark.jvm.failures import sentence_of
from lancelake.spark.jvm.gateway import is_classic
from lancelake.spark.reading import metadata_columns
from lancelake.spark.reading.needed_columns import empty_frame, needed_columns
from lancelake.spark.reading.target_frame import staged_frame, target_frame
from lancelake.spark.types import shown_schema
from lancelake.table.row_steps.find import FoundRows

_ADDRESS = MetaColumn.ROW_ADDRESS.value


def rows_where(spark: SparkSession, at: Snapshot, condition: str) -> FoundRows:
    """Return the rows of a version that match a condition."""

    def chosen(columns: Sequence[str]) -> DataFrame:
        return target_frame(spark, at, columns, [_ADDRESS]).where(f.expr(condition))

    return rows_of(_bound(spark, at, condition, chosen), at)


def rows_of(frame: DataFrame, at: Snapshot) -> FoundRows:
    """Return the rows of a version that a frame contains, by their addresses."""
    frame = frame.select(_ADDRESS)
    found: FoundRows = {}
    description = f"find rows of {at.location.uri}"
    for part in on_partitions(frame, CollectRows(), description=description):
        for fragment, rows in part.items():
            found[fragment] = found.get(fragment, BitMap()) | BitMap.deserialize(rows)
    return found


def fragments_where(spark: SparkSession, at: Snapshot, condition: str) -> frozenset[FragmentId]:
    """Return the fragments with a row that matches a condition."""
    fragment = metadata_columns.FRAGMENT_ID

    def chosen(columns: Sequence[str]) -> DataFrame:
        return target_frame(spark, at, columns, [fragment]).where(f.expr(condition))

    rows = _bound(spark, at, condition, chosen).select(fragment).distinct().collect()
    return frozenset(FragmentId(row[0]) for row in rows)


def has_rows_without(spark: SparkSession, written: Snapshot, condition: str) -> bool:
    """Whether uncommitted rows include some that do not match a condition."""

    def rows(columns: Sequence[str]) -> DataFrame:
        return others(staged_frame(spark, written, columns), f.expr(condition))

    return not _bound(spark, written, condition, rows).select(f.lit(1)).isEmpty()


def others(frame: DataFrame, condition: Column) -> DataFrame:
    """Return the rows that do not match a condition."""
    # A null condition is not a match.
    return frame.where(~f.coalesce(condition, f.lit(False)))


@dataclass(frozen=True, slots=True)
class CollectRows:
    """Collects the row addresses of a partition as one bitmap per fragment."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> dict[FragmentId, bytes]:
        """Return the row offsets by fragment, as portable bitmaps."""
        found: FoundRows = {}
        for batch in batches:
            addresses = batch.column(0).to_numpy().astype(np.uint64)
            for fragment, rows in by_fragment(addresses).items():
                found[fragment] = found.get(fragment, BitMap()) | rows
        return {fragment: bytes(rows.serialize()) for fragment, rows in found.items()}


def _bound(
    spark: SparkSession,
    at: Snapshot,
    condition: str,
    build: Callable[[Sequence[str]], DataFrame],
) -> DataFrame:
    """Build a frame with the columns of a condition; Spark reports unknown columns."""
    shown = shown_schema(at.manifest.schema)

    def tried(columns: Sequence[str]) -> DataFrame:
        return empty_frame(spark, [shown[name] for name in columns]).where(f.expr(condition))

    every = shown.fieldNames()
    try:
        # Classic sessions prune columns themselves.
        return build(every if is_classic(spark) else needed_columns(tried, every))
    except (AnalysisException, ParseException) as error:
        raise InvalidExpressionError(
            f"the condition {condition!r} cannot be parsed: {sentence_of(error)}",
            table=at.location.uri,
            version=at.version,
        ) from error
