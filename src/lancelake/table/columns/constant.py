"""Add columns that have the same value in every row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.engine.port import Engine
from lancelake.scan.count import live_rows
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.table.column_task import ColumnTask
from lancelake.table.columns.add import widened
from lancelake.table.columns.backfill import Backfill, ColumnPlan, column_file, default_engine
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantValues:
    """One row, repeated for every live row of a fragment."""

    row: pa.RecordBatch

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return self.row.schema

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the row as often as the fragment has live rows."""
        spec = scan.spec
        count = live_rows(spec.files, spec.manifest_at, scan.fragment)
        for first in range(0, count, _BATCH_ROWS):
            rows = min(_BATCH_ROWS, count - first)
            yield self.row.take(pa.array(np.zeros(rows, np.int64)))


@names_table
def add_constant_columns(
    base: Snapshot,
    row: pa.RecordBatch,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Add the columns of a batch of one row, with its values in every row, and commit."""

    def planned(at: Snapshot) -> ColumnPlan:
        wide = widened(at, row.schema)
        file = column_file(at, wide.added)
        file.ensure_possible(row.schema)
        values = ConstantValues(row=row)
        tasks = [
            ColumnTask(scan=scan, values=values, file=file)
            for scan in plan(at, ScanRequest(columns=())).tasks
        ]
        return ColumnPlan(schema=wide.schema, tasks=tasks)

    backfill = Backfill(engine=engine or default_engine(), choices=choices)
    return backfill.run(base, planned)
