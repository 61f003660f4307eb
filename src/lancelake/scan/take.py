"""Take: single rows by number or address, in request order."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lancelake.data.column_reader import RowOffsets
from lancelake.data.deletion_files import known_deletions
from lancelake.data.projection import project
from lancelake.data.scan_source import ScanSource
from lancelake.errors import OutOfRangeError, naming
from lancelake.format.fragment import Fragment
from lancelake.format.rowids.segment import U64Array
from lancelake.scan.count import live_rows
from lancelake.scan.execute import fetch
from lancelake.scan.live_rows import LiveRows
from lancelake.scan.outputs import ColumnOutput, resolve_outputs
from lancelake.scan.plan import ScanPlan, ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_lookup import fragment_of, offset_of

_THREADS = 4


@dataclass(frozen=True, slots=True)
class _Pick:
    """Rows to take from one fragment: their offsets, ascending."""

    task: ScanTask
    offsets: RowOffsets


def take(source: ScanSource, numbers: RowOffsets, request: ScanRequest) -> pa.Table:
    """Return rows by their number among the live rows in scan order."""
    with naming(source.files.root.uri, source.manifest.version):
        scan = _plan(source, request)
    unique, inverse = np.unique(numbers, return_inverse=True)
    picks = _picks(source, scan, unique)
    return _gathered(scan.schema, picks, inverse)


def take_from_fragment(
    source: ScanSource, fragment: Fragment, numbers: RowOffsets, request: ScanRequest
) -> pa.Table:
    """Return rows by their number among the live rows of one fragment."""
    rows = live_rows(source.files, source.manifest_at, fragment)
    if len(numbers) and int(numbers.max()) >= rows:
        problem = f"row {int(numbers.max())} is out of range: fragment {fragment.id} has {rows}"
        raise OutOfRangeError(problem, table=source.files.root.uri)
    with naming(source.files.root.uri, source.manifest.version):
        scan = _plan(source, request)
    unique, inverse = np.unique(numbers, return_inverse=True)
    picks = [_Pick(task, _offsets(source, fragment, unique)) for task in scan.tasks]
    return _gathered(scan.schema, picks, inverse)


def take_at(source: ScanSource, addresses: U64Array, request: ScanRequest) -> pa.Table:
    """Return the rows at these addresses, which must exist in the version."""
    with naming(source.files.root.uri, source.manifest.version):
        scan = _plan(source, request)
    unique, inverse = np.unique(addresses, return_inverse=True)
    tasks = {task.fragment.id: task for task in scan.tasks}
    numbers, starts = np.unique(fragment_of(unique), return_index=True)
    parts = np.split(offset_of(unique), starts[1:])
    picks = [
        _Pick(tasks[number], offsets)
        for number, offsets in zip(numbers.tolist(), parts, strict=False)
    ]
    return _gathered(scan.schema, picks, inverse)


def _plan(source: ScanSource, request: ScanRequest) -> ScanPlan:
    """Plan with members of a struct together in that struct, each column once."""
    columns = request.columns
    schema = source.manifest.schema
    if not isinstance(columns, tuple) or len(set(columns) & set(schema.names)) == len(columns):
        return plan(source, request)
    asked = resolve_outputs(schema, ScanRequest(columns=tuple(dict.fromkeys(columns))))
    paths = tuple(output.path for output in asked if isinstance(output, ColumnOutput))
    names = [o.path[0] if isinstance(o, ColumnOutput) else o.name for o in asked]
    cut = replace(source.manifest, schema=project(schema, paths))
    wanted = replace(request, columns=tuple(dict.fromkeys(names)))
    return plan(replace(source, manifest=cut), wanted)


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
        problem = f"row {int(numbers[-1])} is out of range: there are only {before} rows"
        raise OutOfRangeError(problem, table=source.files.root.uri, version=source.manifest.version)
    return picks


def _offsets(source: ScanSource, fragment: Fragment, ranks: RowOffsets) -> RowOffsets:
    if fragment.deletion_file is None:
        return ranks
    return LiveRows(known_deletions(source.files, fragment)).offsets_of(ranks)


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
