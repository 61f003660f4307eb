"""Single rows by number or address, in the order they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelake.data.column_reader import RowOffsets
from lancelake.data.deletion_files import load_deletions
from lancelake.data.scan_source import ScanSource
from lancelake.errors import OutOfRangeError
from lancelake.format.fragment import Fragment
from lancelake.scan.count import live_rows
from lancelake.scan.execute import fetch
from lancelake.scan.plan import ScanPlan, ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.rows import LiveRows

_THREADS = 4


@dataclass(frozen=True, slots=True)
class _Pick:
    """Rows to take from one fragment: their offsets, ascending, and where each one goes."""

    task: ScanTask
    offsets: RowOffsets


def take(source: ScanSource, numbers: RowOffsets, request: ScanRequest) -> pa.Table:
    """Return rows by their number among the live rows in scan order."""
    scan = plan(source, request)
    unique, inverse = np.unique(numbers, return_inverse=True)
    picks = _picks(source, scan, unique)
    return _gathered(scan.schema, picks, inverse)


def take_from_fragment(
    source: ScanSource, fragment: Fragment, numbers: RowOffsets, request: ScanRequest
) -> pa.Table:
    """Return rows by their number among the live rows of one fragment."""
    rows = live_rows(source.files, source.manifest_at, fragment)
    if len(numbers) and int(numbers.max()) >= rows:
        problem = f"row {int(numbers.max())} was asked for, but fragment {fragment.id} has {rows}"
        raise OutOfRangeError(problem, table=source.files.root.uri)
    scan = plan(source, request)
    unique, inverse = np.unique(numbers, return_inverse=True)
    picks = [_Pick(task, _offsets(source, fragment, unique)) for task in scan.tasks]
    return _gathered(scan.schema, picks, inverse)


def _picks(source: ScanSource, scan: ScanPlan, numbers: RowOffsets) -> list[_Pick]:
    picks: list[_Pick] = []
    before, position = 0, 0
    tasks = {task.fragment.id: task for task in scan.tasks}
    for fragment in source.manifest.fragments:
        if position == len(numbers):
            break
        after = before + live_rows(source.files, source.manifest_at, fragment)
        end = int(np.searchsorted(numbers, after, side="left"))
        if end > position:
            ranks = numbers[position:end] - np.uint64(before)
            task = tasks[fragment.id]
            picks.append(_Pick(task, _offsets(source, fragment, ranks)))
        before, position = after, end
    if position < len(numbers):
        problem = f"row {int(numbers[-1])} was asked for, but there are only {before} rows"
        raise OutOfRangeError(problem, table=source.files.root.uri, version=source.manifest.version)
    return picks


def _offsets(source: ScanSource, fragment: Fragment, ranks: RowOffsets) -> RowOffsets:
    if fragment.deletion_file is None:
        return ranks
    return LiveRows(load_deletions(source.files, fragment)).offsets_of(ranks)


def _gathered(schema: pa.Schema, picks: Sequence[_Pick], order: np.ndarray) -> pa.Table:
    if len(picks) <= 1:
        batches = [fetch(pick.task, pick.offsets) for pick in picks]
    else:
        with ThreadPoolExecutor(_THREADS) as pool:
            batches = list(pool.map(lambda pick: fetch(pick.task, pick.offsets), picks))
    table = pa.Table.from_batches(batches, schema=schema)
    if len(order) == table.num_rows and bool(np.all(order == np.arange(len(order)))):
        return table
    return table.take(pa.array(order))
