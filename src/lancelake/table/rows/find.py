"""Which rows of a version does a condition hold for?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow.compute as pc
from pyroaring import BitMap

from lancelake.engine.port import Engine, Job, Progress
from lancelake.format.ids import FragmentId
from lancelake.scan.execute import kept_offsets
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.table.snapshot import Snapshot

Condition: TypeAlias = str | pc.Expression
FoundRows = dict[FragmentId, BitMap]
"""Offsets of rows by fragment; no fragment without rows."""

# Smaller parts would each decode the same pages again.
_LEAST_ROWS = 1 << 20
_TASK_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRows:
    """Rows of one fragment for which the predicate of a scan holds."""

    scan: ScanTask

    @property
    def memory_bytes(self) -> int:
        """About how much memory a run takes."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Return the offsets as a portable bitmap."""
        return bytes(kept_offsets(self.scan).serialize())


def find_rows(
    base: Snapshot,
    condition: Condition | None,
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> FoundRows:
    """Return the live rows for which a condition holds, reading only the columns it names."""
    request = ScanRequest(
        columns=(), filter="true" if condition is None else condition, remembers_small=True
    )
    scans = divided(plan(base.source, request).tasks, engine.parallelism)
    job = Job(
        description=f"find rows of {base.location.uri}",
        tasks=[FindRows(scan=scan) for scan in scans],
        progress=progress,
    )
    found: FoundRows = {}
    for scan, result in zip(scans, engine.run(job), strict=True):
        rows = BitMap.deserialize(result)
        if rows:
            found[scan.fragment.id] = found.get(scan.fragment.id, BitMap()) | rows
    return found


def divided(tasks: Sequence[ScanTask], parallelism: int) -> list[ScanTask]:
    """Cut the tasks of large fragments, while there are fewer tasks than can run at once."""
    if len(tasks) >= parallelism:
        return list(tasks)
    return [part for task in tasks for part in _parts(task, parallelism)]


def _parts(task: ScanTask, count: int) -> list[ScanTask]:
    rows = task.fragment.physical_rows or 0
    step = max(_LEAST_ROWS, -(-rows // count))
    if rows <= step:
        return [task]
    return [
        replace(task, start=start, stop=min(start + step, rows)) for start in range(0, rows, step)
    ]


def count_rows(found: FoundRows) -> int:
    """Count rows over all fragments."""
    return sum(len(rows) for rows in found.values())


def condition_text(condition: Condition | None) -> str:
    """Return a condition as people read it in a transaction."""
    return "true" if condition is None else str(condition)
