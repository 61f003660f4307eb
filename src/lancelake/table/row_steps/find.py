"""Find the rows of a version that match a condition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.engine.port import Engine, Job, Progress
from lancelake.expr.predicate import Filter, Predicate
from lancelake.format.ids import FragmentId
from lancelake.scan.execute import kept_offsets
from lancelake.scan.groups import grouped, kept_offsets_of, packed
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.scan_columns import ScanColumns

FoundRows = dict[FragmentId, BitMap]
"""Row offsets by fragment; fragments without rows are omitted."""

# Smaller parts would decode the same pages repeatedly.
_LEAST_ROWS = 1 << 20
_TASK_BYTES = 32 << 20
_GROUP_ROWS = 1 << 14
_GROUP_SCANS = 256
_LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRows:
    """Rows of some fragments that match the predicate of a scan."""

    scans: tuple[ScanTask, ...]

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Return the offsets as portable bitmaps, one for each scan."""
        columns = ScanColumns.of(self.scans[0].spec)
        found = (rows for group in grouped(self.scans) for rows in kept_offsets_of(group, columns))
        parts = (bytes(rows.serialize()) for rows in found)
        return b"".join(len(each).to_bytes(_LENGTH_BYTES, "little") + each for each in parts)


@names_table
def find_rows(
    base: Snapshot,
    condition: Filter | None,
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> FoundRows:
    """Return the live rows that match a condition, reading only the columns it refers to.

    Rows that an index proves to match are not read.
    """
    request = ScanRequest(
        columns=(), filter="true" if condition is None else condition, remembers_small=True
    )
    tasks = plan(base, request).tasks
    known = [task for task in tasks if not task.recheck]
    found = {task.fragment.id: kept_offsets(task) for task in known}
    scans = divided([task for task in tasks if task.recheck], engine.parallelism)
    # Each task has a fixed cost, so small fragments share one.
    groups = packed(scans, _rows_at_most, most_rows=_GROUP_ROWS, most_tasks=_GROUP_SCANS)
    job = Job(
        description=f"find rows of {base.location.uri}",
        tasks=[FindRows(scans=group) for group in groups],
        progress=progress,
    )
    results = (rows for result in engine.run(job) for rows in _bitmaps(result))
    for scan, rows in zip(scans, results, strict=True):
        found[scan.fragment.id] = found.get(scan.fragment.id, BitMap()) | rows
    ids = (task.fragment.id for task in tasks)
    return {i: found[i] for i in ids if found[i]}


def _bitmaps(data: bytes) -> Iterator[BitMap]:
    """Decode the output of a task."""
    start = 0
    while start < len(data):
        first = start + _LENGTH_BYTES
        start = first + int.from_bytes(data[start:first], "little")
        yield BitMap.deserialize(data[first:start])


def _rows_at_most(scan: ScanTask) -> int:
    return scan.most_rows or _GROUP_ROWS


def divided(tasks: Sequence[ScanTask], parallelism: int) -> list[ScanTask]:
    """Split the tasks of large fragments while there are fewer tasks than can run in parallel."""
    if len(tasks) >= parallelism:
        return list(tasks)
    return [part for task in tasks for part in _parts(task, parallelism)]


def _parts(task: ScanTask, count: int) -> list[ScanTask]:
    rows = task.fragment.physical_rows or 0
    step = max(_LEAST_ROWS, -(-rows // count))
    if (task.most_rows or 0) <= step:
        return [task]
    return [
        replace(task, start=start, stop=min(start + step, rows)) for start in range(0, rows, step)
    ]


def count_rows(found: FoundRows) -> int:
    """Count rows over all fragments."""
    return sum(len(rows) for rows in found.values())


def condition_text(condition: Filter | None) -> str:
    """Return the text of a condition as recorded in a transaction."""
    if condition is None:
        return "true"
    return condition.text if isinstance(condition, Predicate) else str(condition)
