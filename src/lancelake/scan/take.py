"""Take: single rows by number or address, in request order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.column_reader import RowOffsets
from lancelake.data.deletion_files import known_deletions
from lancelake.data.projection import project
from lancelake.errors import OutOfRangeError
from lancelake.format import roaring
from lancelake.format.fragment import Fragment
from lancelake.format.row_address import fragment_of, offset_of
from lancelake.format.rowids.segment import U64Array
from lancelake.process import ContextThreadPool
from lancelake.scan.count import live_rows
from lancelake.scan.execute import fetch
from lancelake.scan.live_rows import LiveRows
from lancelake.scan.outputs import ColumnOutput, resolve_outputs
from lancelake.scan.plan import ScanPlan, ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest

_THREADS = 4


def take(snapshot: Snapshot, numbers: RowOffsets, request: ScanRequest) -> pa.Table:
    """Return rows by their number among the live rows in scan order."""
    scan = _plan(snapshot, request)
    unique, inverse = _unique(numbers)
    picks = _picks(snapshot, scan, unique)
    return _gathered(scan.schema, picks, inverse)


def take_from_fragment(
    snapshot: Snapshot, fragment: Fragment, numbers: RowOffsets, request: ScanRequest
) -> pa.Table:
    """Return rows by their number among the live rows of one fragment."""
    rows = live_rows(snapshot.files, snapshot.manifest_at, fragment)
    if len(numbers) and int(numbers.max()) >= rows:
        problem = f"row {int(numbers.max())} is out of range: fragment {fragment.id} has {rows}"
        raise OutOfRangeError(problem, table=snapshot.files.root.uri)
    scan = _plan(snapshot, request)
    unique, inverse = _unique(numbers)
    picks = [_picked(task, _offsets(snapshot, fragment, unique)) for task in scan.tasks]
    return _gathered(scan.schema, picks, inverse)


def take_at(snapshot: Snapshot, addresses: U64Array, request: ScanRequest) -> pa.Table:
    """Return the rows at these addresses, which must exist in the version."""
    scan = _plan(snapshot, request)
    unique, inverse = _unique(addresses)
    tasks = {task.fragment.id: task for task in scan.tasks}
    numbers, starts = np.unique(fragment_of(unique), return_index=True)
    parts = np.split(offset_of(unique), starts[1:])
    picks = [
        _picked(tasks[number], offsets)
        for number, offsets in zip(numbers.tolist(), parts, strict=False)
    ]
    return _gathered(scan.schema, picks, inverse)


@names_table
def _plan(snapshot: Snapshot, request: ScanRequest) -> ScanPlan:
    """Plan with members of a struct together in that struct, each column once."""
    columns = request.columns
    schema = snapshot.manifest.schema
    if not isinstance(columns, tuple) or len(set(columns) & set(schema.names)) == len(columns):
        return plan(snapshot, request)
    asked = resolve_outputs(schema, ScanRequest(columns=tuple(dict.fromkeys(columns))))
    paths = tuple(output.path for output in asked if isinstance(output, ColumnOutput))
    names = [o.path[0] if isinstance(o, ColumnOutput) else o.name for o in asked]
    cut = snapshot.with_schema(project(schema, paths))
    wanted = replace(request, columns=tuple(dict.fromkeys(names)))
    return plan(cut, wanted)


def _unique(numbers: U64Array) -> tuple[U64Array, np.ndarray | None]:
    """Return the numbers sorted and unique, and where each was; None where they are already."""
    if bool((numbers[1:] > numbers[:-1]).all()):
        return numbers, None
    return np.unique(numbers, return_inverse=True)


def _picks(snapshot: Snapshot, scan: ScanPlan, numbers: RowOffsets) -> list[ScanTask]:
    picks: list[ScanTask] = []
    before, position = 0, 0
    tasks = {task.fragment.id: task for task in scan.tasks}
    for fragment in snapshot.manifest.fragments:
        if position == len(numbers):
            break
        after = before + live_rows(snapshot.files, snapshot.manifest_at, fragment)
        end = int(np.searchsorted(numbers, after, side="left"))
        if end > position:
            ranks = numbers[position:end] - np.uint64(before)
            task = tasks[fragment.id]
            picks.append(_picked(task, _offsets(snapshot, fragment, ranks)))
        before, position = after, end
    if position < len(numbers):
        problem = f"row {int(numbers[-1])} is out of range: there are only {before} rows"
        raise OutOfRangeError(
            problem, table=snapshot.files.root.uri, version=snapshot.manifest.version
        )
    return picks


def _offsets(snapshot: Snapshot, fragment: Fragment, ranks: RowOffsets) -> RowOffsets:
    if fragment.deletion_file is None:
        return ranks
    return LiveRows(known_deletions(snapshot.files, fragment)).offsets_of(ranks)


def _picked(task: ScanTask, offsets: RowOffsets) -> ScanTask:
    return task.matching(roaring.of(offsets.astype(np.uint32)))


def _gathered(schema: pa.Schema, picks: Sequence[ScanTask], order: np.ndarray | None) -> pa.Table:
    if len(picks) <= 1:
        batches = [fetch(pick) for pick in picks]
    else:
        with ContextThreadPool(_THREADS) as pool:
            batches = list(pool.map(fetch, picks))
    table = pa.Table.from_batches(batches, schema=schema)
    return table if order is None else table.take(pa.array(order))
