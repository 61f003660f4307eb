"""Rewrite selected rows of a version into new fragments with other values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from lancelake.clock import SystemIds
from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.rebatch import gathered
from lancelake.data.fragment_writer import write_fragments
from lancelake.data.read_ahead import read_ahead
from lancelake.data.row_meta import MetaColumn
from lancelake.data.write_task import WriteTask
from lancelake.engine.port import Engine, Job, Progress
from lancelake.errors import CorruptTableError
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_bytes import from_bytes, to_bytes
from lancelake.scan.execute import execute
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.scan_columns import ScanColumns
from lancelake.table.row_steps.files import row_files, with_row_ids
from lancelake.table.row_steps.find import FoundRows
from lancelake.table.row_steps.writable import writable
from lancelake.table.rows.assign import Assignment, assigned

_TASK_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteRows:
    """Rows read, changed and written to new files; they keep their stable row ids."""

    scans: tuple[ScanTask, ...]
    assignments: tuple[Assignment, ...]
    write: WriteTask
    keeps_row_ids: bool

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Write the rows and return their fragments."""
        row_ids: list[pa.Array] = []
        rows = sum(len(scan.rows or ()) for scan in self.scans)
        with closing(read_ahead(self._batches(row_ids), rows=rows)) as batches:
            first = next(batches, None)
            if first is None:
                raise CorruptTableError("the rows to change are not in their fragment")
            reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
            fragments = write_fragments(self.write, reader, ids=SystemIds())
        if self.keeps_row_ids:
            fragments = with_row_ids(fragments, row_ids)
        return to_bytes(fragments)

    def _batches(self, row_ids: list[pa.Array]) -> Iterator[pa.RecordBatch]:
        # Each evaluation has a fixed cost, so batches are as large as those of the codec.
        for batch in gathered(self._rows()):
            changed = assigned(batch, self.assignments)
            if self.keeps_row_ids:
                position = changed.schema.get_field_index(MetaColumn.ROW_ID.value)
                row_ids.append(changed.column(position))
                changed = changed.remove_column(position)
            yield changed

    def _rows(self) -> Iterator[pa.RecordBatch]:
        columns = ScanColumns.of(self.scans[0].spec)
        replaced = {assignment.column for assignment in self.assignments}
        for scan in self.scans:
            yield from writable(scan, execute(scan, columns), without=replaced)


def rewrite_rows(
    base: Snapshot,
    rows: FoundRows,
    assignments: Sequence[Assignment],
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> tuple[Fragment, ...]:
    """Rewrite the selected rows and return their uncommitted fragments."""
    keeps_row_ids = base.manifest.has_stable_row_ids
    request = ScanRequest(with_row_id=keeps_row_ids, fragment_ids=tuple(sorted(rows)))
    write = row_files(base)
    scans = [scan.matching(rows[scan.fragment.id]) for scan in plan(base, request).tasks]
    tasks = [
        RewriteRows(
            scans=group,
            assignments=tuple(assignments),
            write=write,
            keeps_row_ids=keeps_row_ids,
        )
        for group in _grouped(scans, write.max_rows_per_file)
    ]
    job = Job(description=f"rewrite rows of {base.location.uri}", tasks=tasks, progress=progress)
    return tuple(fragment for result in engine.run(job) for fragment in from_bytes(result))


def _grouped(scans: Sequence[ScanTask], most: int) -> Iterator[tuple[ScanTask, ...]]:
    """Group the scans of fragments until a group fills a file."""
    group: list[ScanTask] = []
    count = 0
    for scan in scans:
        group.append(scan)
        count += len(scan.rows or ())
        if count >= most:
            yield tuple(group)
            group, count = [], 0
    if group:
        yield tuple(group)
