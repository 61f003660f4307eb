"""Take: single rows by number or address, in request order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.column_reader import RowOffsets
from lancelake.data.deletion_files import known_deletions
from lancelake.data.projection import project
from lancelake.data.recently_used import RecentlyUsed
from lancelake.errors import OutOfRangeError
from lancelake.format.computed_once import computed_once
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.row_address import fragment_of, offset_of
from lancelake.format.rowids.segment import U64Array
from lancelake.process import ContextThreadPool
from lancelake.scan.count import live_rows
from lancelake.scan.execute import RowFetcher
from lancelake.scan.live_rows import LiveRows
from lancelake.scan.outputs import ColumnOutput, resolve_outputs
from lancelake.scan.plan import ScanPlan, ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest

_THREADS = 4
_CACHED_PLANS = 8
_OPEN_FRAGMENTS = 64

_Picks = list[tuple[RowFetcher, RowOffsets]]


@dataclass(frozen=True)
class _Source:
    """A version prepared for takes of some columns."""

    snapshot: Snapshot
    scan: ScanPlan

    @computed_once
    def tasks(self) -> dict[FragmentId, ScanTask]:
        """Task of each fragment."""
        return {task.fragment.id: task for task in self.scan.tasks}

    @computed_once
    def ends(self) -> U64Array:
        """Number of live rows up to the end of each task, in scan order."""
        snapshot = self.snapshot
        places = snapshot.files, snapshot.manifest_at
        rows = [live_rows(*places, task.fragment) for task in self.scan.tasks]
        return np.cumsum(rows, dtype=np.uint64)

    def fetcher(self, task: ScanTask) -> RowFetcher:
        """Return what reads the rows of a task; recently used ones are open."""
        return _fetchers.get(id(task), lambda: RowFetcher(task))


# Programs take rows of the same columns again and again. A version is kept with its plan, so that
# no other gets its id.
_sources: RecentlyUsed[tuple[int, ScanRequest], _Source] = RecentlyUsed(_CACHED_PLANS)
_fetchers: RecentlyUsed[int, RowFetcher] = RecentlyUsed(_OPEN_FRAGMENTS)


def take(snapshot: Snapshot, numbers: RowOffsets, request: ScanRequest) -> pa.Table:
    """Return rows by their number among the live rows in scan order."""
    source = _source(snapshot, request)
    unique, inverse = _unique(numbers)
    return _gathered(source.scan.schema, _picks(source, unique), inverse)


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
    picks = [(RowFetcher(task), _offsets(snapshot, fragment, unique)) for task in scan.tasks]
    return _gathered(scan.schema, picks, inverse)


def take_at(snapshot: Snapshot, addresses: U64Array, request: ScanRequest) -> pa.Table:
    """Return the rows at these addresses, which must exist in the version."""
    source = _source(snapshot, request)
    unique, inverse = _unique(addresses)
    numbers, starts = np.unique(fragment_of(unique), return_index=True)
    parts = np.split(offset_of(unique), starts[1:])
    picks = [
        (source.fetcher(source.tasks[number]), offsets)
        for number, offsets in zip(numbers.tolist(), parts, strict=False)
    ]
    return _gathered(source.scan.schema, picks, inverse)


def close_fragments() -> None:
    """Close the fragments that takes left open; removed files use disk space while they are."""
    _sources.forget(lambda _: True)
    _fetchers.forget(lambda _: True)


def _source(snapshot: Snapshot, request: ScanRequest) -> _Source:
    """Prepare a version; what was prepared for the same request is used again."""
    key = id(snapshot), request
    return _sources.get(key, lambda: _Source(snapshot, _plan(snapshot, request)))


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


def _picks(source: _Source, numbers: RowOffsets) -> _Picks:
    """Assign sorted row numbers to tasks."""
    ends = source.ends
    rows = int(ends[-1]) if len(ends) else 0
    snapshot = source.snapshot
    if len(numbers) and int(numbers[-1]) >= rows:
        problem = f"row {int(numbers[-1])} is out of range: there are only {rows} rows"
        raise OutOfRangeError(
            problem, table=snapshot.files.root.uri, version=snapshot.manifest.version
        )
    picks: _Picks = []
    position = 0
    while position < len(numbers):
        place = int(ends.searchsorted(numbers[position], side="right"))
        is_last = place == len(ends) - 1
        end = len(numbers) if is_last else int(numbers.searchsorted(ends[place], side="left"))
        before = ends[place - 1] if place else np.uint64(0)
        task = source.scan.tasks[place]
        ranks = numbers[position:end] - before
        picks.append((source.fetcher(task), _offsets(snapshot, task.fragment, ranks)))
        position = end
    return picks


def _offsets(snapshot: Snapshot, fragment: Fragment, ranks: RowOffsets) -> RowOffsets:
    if fragment.deletion_file is None:
        return ranks
    return LiveRows(known_deletions(snapshot.files, fragment)).offsets_of(ranks)


def _gathered(schema: pa.Schema, picks: _Picks, order: np.ndarray | None) -> pa.Table:
    if len(picks) <= 1:
        batches = [fetcher.fetch(offsets) for fetcher, offsets in picks]
    else:
        with ContextThreadPool(_THREADS) as pool:
            batches = list(pool.map(RowFetcher.fetch, *zip(*picks, strict=True)))
    table = pa.Table.from_batches(batches, schema=schema)
    return table if order is None else table.take(pa.array(order))
