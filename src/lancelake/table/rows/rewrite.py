"""Rewrite selected rows of a version into new fragments with other values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.clock import SystemIds
from lancelake.data.arrays.rebatch import gathered
from lancelake.data.fragment_writer import write_fragments
from lancelake.data.read_ahead import read_ahead
from lancelake.data.row_meta import MetaColumn
from lancelake.data.write_task import WriteTask
from lancelake.engine.port import Engine, Job, Progress
from lancelake.errors import CorruptTableError
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_bytes import from_bytes, to_bytes
from lancelake.format.rowids.sequence import RowIdSequence
from lancelake.scan.execute import ScanColumns, selected
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.table.rows.assign import Assignment, assigned
from lancelake.table.rows.find import FoundRows
from lancelake.table.rows.writable import writable
from lancelake.table.snapshot import Snapshot

_TASK_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """Rows of one fragment; `rows` is a portable bitmap of their offsets."""

    scan: ScanTask
    rows: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteRows:
    """Rows read, changed and written to new files; they keep their stable row ids."""

    picks: tuple[Pick, ...]
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
        with closing(read_ahead(self._batches(row_ids))) as batches:
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
        columns = ScanColumns.of(self.picks[0].scan.spec)
        replaced = {assignment.column for assignment in self.assignments}
        for pick in self.picks:
            rows = selected(pick.scan, BitMap.deserialize(pick.rows), columns)
            yield from writable(pick.scan, rows, without=replaced)


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
    picks = [
        Pick(scan=scan, rows=bytes(rows[scan.fragment.id].serialize()))
        for scan in plan(base.source, request).tasks
    ]
    tasks = [
        RewriteRows(
            picks=group,
            assignments=tuple(assignments),
            write=write,
            keeps_row_ids=keeps_row_ids,
        )
        for group in _grouped(picks, rows, write.max_rows_per_file)
    ]
    job = Job(description=f"rewrite rows of {base.location.uri}", tasks=tasks, progress=progress)
    return tuple(fragment for result in engine.run(job) for fragment in from_bytes(result))


def row_files(base: Snapshot) -> WriteTask:
    """Return the write settings for rows of a version."""
    return WriteTask(
        root=base.location,
        schema=base.manifest.schema,
        file_version=base.manifest.data_version,
        casts=True,
        allow_external_blobs=True,
        # The table already has such columns.
        newest_readers_only=True,
    )


def with_row_ids(
    fragments: Sequence[Fragment], row_ids: Sequence[pa.Array]
) -> tuple[Fragment, ...]:
    """Assign row ids to the first rows of fragments written from one stream."""
    parts = [np.asarray(ids, dtype=np.uint64) for ids in row_ids]
    given = np.concatenate(parts) if parts else np.array([], dtype=np.uint64)
    found: list[Fragment] = []
    first = 0
    for fragment in fragments:
        last = first + (fragment.physical_rows or 0)
        ids = given[first:last]
        found.append(
            replace(fragment, row_ids=RowIdSequence.of(ids).encode()) if len(ids) else fragment
        )
        first = last
    return tuple(found)


def _grouped(picks: Sequence[Pick], rows: FoundRows, most: int) -> Iterator[tuple[Pick, ...]]:
    """Group picks until a group fills a file."""
    group: list[Pick] = []
    count = 0
    for pick in picks:
        group.append(pick)
        count += len(rows[pick.scan.fragment.id])
        if count >= most:
            yield tuple(group)
            group, count = [], 0
    if group:
        yield tuple(group)
