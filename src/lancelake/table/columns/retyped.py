"""Columns written once more in another type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.format.arrow_schema import storage_schema
from lancelake.format.schema import Field, Schema
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.table.column_task import ColumnTask
from lancelake.table.columns.backfill import ColumnPlan, column_file
from lancelake.table.columns.live_columns import live_batches


@dataclass(frozen=True, slots=True, kw_only=True)
class RetypedValues(ABC):
    """Values of columns in another type."""

    before: Schema
    after: Schema

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return storage_schema(self.after)

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the values of the live rows."""
        schema = self.schema
        columns = list(zip(self.before.fields, self.after.fields, schema.types, strict=True))
        for batch in live_batches(scan, self.before):
            arrays = [
                self.retyped(array, *column)
                for array, column in zip(batch.columns, columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    @abstractmethod
    def retyped(self, array: pa.Array, old: Field, new: Field, target: pa.DataType) -> pa.Array:
        """Return the values of a column in the type in which its new field is stored."""


def rewrite_plan(base: Snapshot, schema: Schema, values: RetypedValues) -> ColumnPlan:
    """Plan one more file with the values for each fragment, for a version with this schema."""
    file = column_file(base, values.after)
    file.ensure_possible(values.schema)
    tasks = [
        ColumnTask(scan=scan, values=values, file=file)
        for scan in plan(base, ScanRequest(columns=())).tasks
    ]
    return ColumnPlan(schema=schema, tasks=tasks)
