"""Plan reads of a table with its MemWAL: the rows of a version, and those that replace them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.core.table import Table
from lancelake.core.values.conditions import Condition, joined
from lancelake.core.values.metadata import Snapshot
from lancelake.core.values.tasks import ScanColumns, ScanTask, SplitLimits, execute_scan, split
from lancelake.core.values.wal import Freshness, PinnedView, RowShape, SeenKeys, live
from lancelake.spark.tasks.columns import SparkConformer
from lancelake.spark.tasks.read_plan import (
    ReadRequest,
    RowsRequest,
    TravelingPartition,
    column_types,
    limit_partitions,
    scan_plan,
)
from lancelake.spark.values.options import TableOptions
from lancelake.spark.values.spark_types import TypeOf, arrow_schema, shown_schema

FRESHNESS = "freshness"
LATEST_OPTIONS = ("batchRows", "maxPartitionBytes", FRESHNESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestRequest(RowsRequest):
    """A read of the newest row of each key."""

    freshness: Freshness = Freshness.DURABLE
    batch_rows: int | None = None
    limits: SplitLimits = field(default_factory=SplitLimits)

    @staticmethod
    def of(
        snapshot: Snapshot, schema: t.StructType, options: TableOptions, limits: SplitLimits
    ) -> LatestRequest:
        """Request columns, with the options of a read."""
        return LatestRequest(
            snapshot=snapshot,
            schema=schema,
            freshness=Freshness.named(options.get(FRESHNESS) or Freshness.DURABLE),
            batch_rows=options.positive("batchRows"),
            limits=limit_partitions(options, limits),
        )

    def types(self) -> TypeOf:
        """Return a type lookup for the columns of the version."""
        return column_types(self.snapshot.manifest.schema)

    def texts(self) -> Sequence[str]:
        """Return what is read, and how fresh."""
        return "latest rows", self.freshness.value

    def partitions(self) -> Sequence[TravelingPartition]:
        """Pin the regions, and return the input of each Spark partition."""
        schema, view = arrow_schema(self.schema), Table(self.snapshot).wal.pin(self.freshness)
        read = ReadRequest(
            snapshot=self.snapshot,
            schema=self._with_keys(),
            filters=self.filters,
            batch_rows=self.batch_rows,
            limits=self.limits,
        )
        parts: list[TravelingPartition] = [
            TablePartition(tasks=tasks, view=view, schema=schema)
            for tasks in split(scan_plan(read), self.limits)
            if tasks
        ]
        parts += [
            RegionPartition(view=view, region=place, schema=schema, filters=self.filters)
            for place in range(len(view.regions))
        ]
        return parts

    def _with_keys(self) -> t.StructType:
        """Return the output columns and the key, which identifies replaced rows."""
        own = shown_schema(self.snapshot.manifest.schema)
        named = set(self.schema.fieldNames())
        keys = (key for key in RowShape.of(self.snapshot).keys if key not in named)
        return t.StructType([*self.schema.fields, *(own[key] for key in keys)])


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePartition:
    """Tasks of a scan of the version, without rows that the MemWAL replaces."""

    tasks: tuple[ScanTask, ...]
    view: PinnedView
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in the Arrow types that Spark expects."""
        conform = SparkConformer(self.schema)
        yield from map(conform, self.view.opened().replaced_keys.others(self._rows()))

    def _rows(self) -> Iterator[pa.RecordBatch]:
        columns = ScanColumns.of(self.tasks[0].spec)
        for task in self.tasks:
            yield from execute_scan(task, columns)


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
            newest = live(rows)
            if condition is not None:
                newest = newest.filter(condition(newest))
            if newest.num_rows:
                yield conform(newest)
