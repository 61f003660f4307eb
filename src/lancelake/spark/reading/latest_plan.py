"""Plan reads of a table with its MemWAL: the rows of a version, and those that replace them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.expr.condition import Condition
from lancelake.expr.predicate import joined
from lancelake.memwal.pinned import PinnedView, pin
from lancelake.memwal.shape import RowShape, live
from lancelake.memwal.view import Freshness, SeenKeys
from lancelake.scan.execute import execute
from lancelake.scan.plan import ScanTask
from lancelake.scan.scan_columns import ScanColumns
from lancelake.scan.split import SplitLimits, split
from lancelake.spark.reading.partition import TravelingPartition
from lancelake.spark.reading.read_plan import ReadRequest, scan_plan
from lancelake.spark.reading.spark_values import SparkConformer
from lancelake.spark.types import arrow_schema, shown_schema

FRESHNESS = "freshness"
LATEST_OPTIONS = ("batchRows", "maxPartitionBytes", FRESHNESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestRequest:
    """A read of the newest row of each key: the version, the output columns and the filters."""

    snapshot: Snapshot
    schema: t.StructType
    freshness: Freshness = Freshness.DURABLE
    filters: tuple[Condition, ...] = ()
    batch_rows: int | None = None
    limits: SplitLimits = field(default_factory=SplitLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePartition:
    """Tasks of a scan of the version, without rows that the MemWAL replaces."""

    tasks: tuple[ScanTask, ...]
    view: PinnedView
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in the Arrow types that Spark expects."""
        conform = SparkConformer(self.schema)
        yield from map(conform, self.view.replaced_keys().others(self._rows()))

    def _rows(self) -> Iterator[pa.RecordBatch]:
        columns = ScanColumns.of(self.tasks[0].spec)
        for task in self.tasks:
            yield from execute(task, columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionPartition:
    """The newest rows of one region."""

    view: PinnedView
    region: int
    """Position of the region in the view."""
    schema: pa.Schema
    filters: tuple[Condition, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in the Arrow types that Spark expects."""
        conform, condition = SparkConformer(self.schema), joined(self.filters)
        only = replace(self.view, regions=(self.view.regions[self.region],))
        opened = only.opened()
        for rows in opened.unmerged(opened.regions[0], SeenKeys(opened.shape)):
            kept = live(rows)
            if condition is not None:
                kept = kept.filter(condition(kept))
            if kept.num_rows:
                yield conform(kept)


def latest_partitions(request: LatestRequest) -> list[TravelingPartition]:
    """Pin the regions, and return the input of each Spark partition."""
    base, schema = request.snapshot, arrow_schema(request.schema)
    view = pin(base, request.freshness)
    read = ReadRequest(
        snapshot=base,
        schema=_with_keys(request),
        filters=request.filters,
        batch_rows=request.batch_rows,
        limits=request.limits,
    )
    parts: list[TravelingPartition] = [
        TablePartition(tasks=tasks, view=view, schema=schema)
        for tasks in split(scan_plan(read), request.limits)
        if tasks
    ]
    parts += [
        RegionPartition(view=view, region=place, schema=schema, filters=request.filters)
        for place in range(len(view.regions))
    ]
    return parts


def _with_keys(request: LatestRequest) -> t.StructType:
    """Return the output columns and the key, which identifies replaced rows."""
    own = shown_schema(request.snapshot.manifest.schema)
    keys = RowShape.of(request.snapshot).keys
    named = set(request.schema.fieldNames())
    return t.StructType([*request.schema.fields, *(own[k] for k in keys if k not in named)])
