"""Add columns by joining other data to a table by a key."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.row_meta import META_NAMES
from lancelake.engine.port import Engine, Progress
from lancelake.errors import InvalidRequestError
from lancelake.format.ids import FragmentId
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.storage.location import Location
from lancelake.suggest import suggestion
from lancelake.table.column_task import ColumnTask
from lancelake.table.columns.add import widened
from lancelake.table.columns.backfill import Backfill, ColumnPlan, column_file, default_engine
from lancelake.table.columns.join_source import MEMORY_BYTES, JoinRows, join_rows
from lancelake.table.columns.match_rows import Matches, match_rows
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices

_BATCH_BYTES = 8 << 20
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinKey:
    """The table's column and the data's column that must be equal."""

    left: str
    right: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedValues:
    """Values of the source rows that match a fragment's rows; null without a match."""

    source: JoinRows
    matches: Matches

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return self.source.schema

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the values of the live rows."""
        rows = self.matches.rows(scan.fragment.id)
        step = max(1, min(_BATCH_ROWS, _BATCH_BYTES // self.source.row_bytes))
        for first in range(0, len(rows), step):
            yield self.source.take(rows[first : first + step])


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Data to join, and the folder for temporary files, which workers must be able to access."""

    source: JoinRows
    left: str
    folder: Path

    def scans(
        self, base: Snapshot, fragment_ids: tuple[FragmentId, ...] | None = None
    ) -> tuple[ScanTask, ...]:
        """Return the scans of the table's key column."""
        request = ScanRequest(columns=(self.left,), fragment_ids=fragment_ids)
        return plan(base, request).tasks

    def plan(
        self, base: Snapshot, fragment_ids: tuple[FragmentId, ...] | None = None
    ) -> ColumnPlan:
        """Plan the columns of the data as columns of the table."""
        wide = widened(base, self.source.schema)
        file = column_file(base, wide.added)
        file.ensure_possible(self.source.schema)
        scans = self.scans(base, fragment_ids)
        values = JoinedValues(
            source=self.source, matches=match_rows(scans, self.source, self.folder)
        )
        tasks = [ColumnTask(scan=scan, values=values, file=file) for scan in scans]
        return ColumnPlan(schema=wide.schema, tasks=tasks)


@names_table
def merge_columns(
    base: Snapshot,
    reader: pa.RecordBatchReader,
    key: JoinKey,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    progress: Progress | None = None,
    memory_bytes: int = MEMORY_BYTES,
) -> Snapshot:
    """Add the data's other columns, with its values where the keys are equal, and commit.

    Rows without a match get nulls; if several rows match, the last one wins.
    """
    ensure_joinable(base, reader.schema, key)
    backfill = Backfill(engine=engine or default_engine(), choices=choices, progress=progress)
    with tempfile.TemporaryDirectory(prefix="lancelake-join-") as folder:
        join = prepared(reader, key, Path(folder), memory_bytes=memory_bytes)
        return backfill.run(base, join.plan)


def prepared(
    reader: pa.RecordBatchReader, key: JoinKey, folder: Path, *, memory_bytes: int = MEMORY_BYTES
) -> Join:
    """Materialise the data of a join."""
    source = join_rows(reader, key.right, scratch=Location.parse(folder), memory_bytes=memory_bytes)
    return Join(source=source, left=key.left, folder=folder)


@names_table
def ensure_joinable(base: Snapshot, data: pa.Schema, key: JoinKey) -> None:
    """Refuse a missing key, columns that the table already has, and invalid columns."""
    schema = base.manifest.schema
    if key.left not in META_NAMES and schema.find(key.left) is None:
        problem = f"Column {key.left} does not exist in the left side dataset"
        advice = suggestion(key.left, schema.names, "columns")
        raise InvalidRequestError(problem, column=key.left, action=advice)
    ensure_key(data, key)
    shared = [name for name in data.names if name != key.right and name in schema.names]
    if shared:
        problem = f"Column {shared[0]} exists in both sides of the dataset"
        raise InvalidRequestError(problem, column=shared[0], action="Rename it in the data.")


def ensure_key(data: pa.Schema, key: JoinKey) -> None:
    """Refuse data without the key column, or with no other column."""
    if key.right not in data.names:
        known = ", ".join(data.names)
        problem = f"Column {key.right} does not exist in the right side data, which has: {known}"
        raise InvalidRequestError(problem, column=key.right)
    if len(data.names) == 1:
        problem = f"the data has no column other than the key {key.right}"
        raise InvalidRequestError(problem, column=key.right)
