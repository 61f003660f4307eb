"""Rows by their number among the live rows, by their ids and by their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.caches import CacheKind
from lancelake.commit.snapshot import Snapshot
from lancelake.data.column_reader import RowOffsets, project
from lancelake.data.fragment_reader import RowMeta, known_deletions, physical_rows
from lancelake.errors import InvalidRequestError, OutOfRangeError
from lancelake.format import row_address
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.frozen import computed_once
from lancelake.format.ids import MAX_ROWS, FragmentId
from lancelake.format.row_address import (
    ascending,
    by_fragment,
    fragment_of,
    offset_of,
    row_addresses,
)
from lancelake.format.rowids import U64Array, find
from lancelake.index.kind import IdKind
from lancelake.index.row_sets import RowIds, union
from lancelake.scan.execute import RowFetcher
from lancelake.scan.live_rows import live_rows
from lancelake.scan.plan import ScanPlan, ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ColumnOutput, MetaOutput, Output, ScanRequest, resolve_outputs
from lancelake.scan.task_rows import LiveRows
from lancelake.storage.location import Location
from lancelake.threads import Pool, aside

MISSING = np.uint64((1 << 64) - 1)
"""Address of a row that does not exist."""


def addresses_of(snapshot: Snapshot, row_ids: U64Array) -> U64Array:
    """Return the address of each row, in request order; `MISSING` for rows that do not exist.

    Without stable row ids the ids are the addresses. An offset outside of its fragment raises an
    error; a row that is deleted, or whose fragment is not part of the version, is missing.
    """
    unique, inverse = np.unique(row_ids, return_inverse=True)
    stable = snapshot.manifest.has_stable_row_ids
    addresses = _by_id(snapshot, unique) if stable else _by_address(snapshot, unique)
    return addresses[inverse]


def live_addresses(snapshot: Snapshot, addresses: U64Array) -> U64Array:
    """Return the addresses, with `MISSING` for rows that are deleted or never existed."""
    unique, inverse = np.unique(addresses, return_inverse=True)
    return _by_address(snapshot, unique)[inverse]


def _by_id(snapshot: Snapshot, ids: U64Array) -> U64Array:
    """Find stable ids; a moved row leaves its id behind on a deleted one."""
    out = np.full(len(ids), MISSING, np.uint64)
    for fragment in snapshot.manifest.fragments:
        rows = physical_rows(snapshot.files, snapshot.manifest_at, fragment)
        meta = RowMeta(snapshot.files, fragment, rows, has_stable_row_ids=True)
        positions, offsets = find(meta.row_id_sequence(), ids)
        if len(positions):
            live = _live(snapshot, fragment, offsets)
            out[positions[live]] = row_addresses(fragment.id, offsets[live])
    return out


def _by_address(snapshot: Snapshot, addresses: U64Array) -> U64Array:
    out = np.full(len(addresses), MISSING, np.uint64)
    numbers = fragment_of(addresses)
    for fragment in snapshot.manifest.fragments:
        low, high = np.searchsorted(numbers, [fragment.id, fragment.id + 1])
        if low == high:
            continue
        offsets = offset_of(addresses[low:high])
        rows = physical_rows(snapshot.files, snapshot.manifest_at, fragment)
        if int(offsets[-1]) >= rows:
            problem = (
                f"row {int(offsets[-1])} of fragment {fragment.id} was asked for, "
                f"which has {rows} rows"
            )
            raise InvalidRequestError(problem, table=snapshot.files.root.uri)
        live = _live(snapshot, fragment, offsets)
        out[low:high][live] = addresses[low:high][live]
    return out


def _live(snapshot: Snapshot, fragment: Fragment, offsets: U64Array) -> np.ndarray:
    if fragment.deletion_file is None:
        return np.ones(len(offsets), np.bool_)
    deleted = known_deletions(snapshot.files, fragment)
    gone = np.frombuffer(deleted.to_array(), dtype=np.uint32)
    return ~np.isin(offsets, gone)


Parts = dict[FragmentId, BitMap]


@dataclass(frozen=True, slots=True)
class AllowedRows:
    """Rows to read, and rows not to read, by the high and low words of their ids."""

    allowed: Parts | None
    blocked: Parts
    is_addressed: bool = False
    """Whether the rows are given by their addresses, also where they have stable ids."""

    @staticmethod
    def at(addresses: U64Array) -> AllowedRows:
        """Return the mask of the rows at some addresses."""
        return AllowedRows(by_fragment(addresses), {}, is_addressed=True)

    @staticmethod
    def of(allowlist: bytes | None, blocklist: bytes | None) -> AllowedRows | None:
        """Decode serialized sets; None if there is neither."""
        if allowlist is None and blocklist is None:
            return None
        allowed = None if allowlist is None else row_address.decode(allowlist)
        return AllowedRows(allowed, {} if blocklist is None else row_address.decode(blocklist))

    def at_addresses(self, snapshot: Snapshot) -> AllowedRows:
        """Return the mask by address; only stable row ids differ from addresses."""
        if self.is_addressed or not snapshot.manifest.has_stable_row_ids:
            return self
        allowed = None if self.allowed is None else _to_addresses(snapshot, self.allowed)
        return AllowedRows(allowed, _to_addresses(snapshot, self.blocked))

    def applied(self, task: ScanTask) -> ScanTask | None:
        """Return the task for the rows of the mask; None if there are none."""
        number = task.fragment.id
        if self.allowed is None and number not in self.blocked:
            return task
        every = range(task.fragment.physical_rows or MAX_ROWS)
        rows = BitMap(every) if self.allowed is None else self.allowed.get(number, BitMap())
        rows = rows - self.blocked.get(number, BitMap())
        masked = task.within(rows)
        return masked if masked.rows else None


def plan_masked(snapshot: Snapshot, request: ScanRequest, mask: AllowedRows) -> ScanPlan:
    """Plan a scan of the rows of a mask; offset and limit count these rows only."""
    whole = plan(snapshot, replace(request, offset=None, limit=None))
    here = mask.at_addresses(snapshot)
    tasks = (here.applied(task) for task in whole.tasks)
    return replace(
        whole,
        tasks=tuple(task for task in tasks if task is not None),
        skip=request.offset or 0,
        limit=request.limit,
    )


def _to_addresses(snapshot: Snapshot, parts: Parts) -> Parts:
    addresses = addresses_of(snapshot, ascending(parts))
    return by_fragment(addresses[addresses != MISSING])


def live_offsets(base: Snapshot, fragment: Fragment) -> BitMap:
    """Return the offsets of the rows of a fragment that are not deleted."""
    live = BitMap()
    live.add_range(0, physical_rows(base.files, base.manifest_at, fragment))
    return live - known_deletions(base.files, fragment) if fragment.deletion_file else live


def live_ids(base: Snapshot, fragments: BitMap, stored: IdKind) -> RowIds:
    """Return what an index stores for the live rows of fragments."""
    by_id = FragmentList.of(base.manifest.fragments).by_id()
    numbers = [number for number in fragments if FragmentId(number) in by_id]
    rows = {number: live_offsets(base, by_id[FragmentId(number)]) for number in numbers}
    return ids_of_rows(base, rows, stored)


def ids_of_rows(base: Snapshot, rows: Mapping[int, BitMap], stored: IdKind) -> RowIds:
    """Return what an index stores for rows, given by the offsets in their fragments."""
    if stored is IdKind.ADDRESS:
        return RowIds.within(rows)
    by_id = FragmentList.of(base.manifest.fragments).by_id()
    return union(_stable_ids(base, by_id[FragmentId(i)], part) for i, part in rows.items())


def _stable_ids(base: Snapshot, fragment: Fragment, offsets: BitMap) -> RowIds:
    rows = physical_rows(base.files, base.manifest_at, fragment)
    meta = RowMeta(base.files, fragment, rows, has_stable_row_ids=True)
    ids = meta.row_id_sequence().values()
    if len(offsets) < rows:
        ids = ids[row_address.ascending({0: offsets})]
    return RowIds.of(ids)


_THREADS = 4
_CACHED_PLANS = 8
_OPEN_FRAGMENTS = 64

_Picks = list[tuple[RowFetcher, RowOffsets]]


@dataclass(frozen=True)
class _Source:
    """A version prepared for takes of some columns."""

    snapshot: Snapshot
    request: ScanRequest
    scan: ScanPlan

    @computed_once
    def names(self) -> tuple[str, ...] | None:
        """Columns of the rows where some were asked for repeatedly; else None."""
        columns = self.request.columns
        if not isinstance(columns, tuple) or len(set(columns)) == len(columns):
            return None
        names = list(_names(self.snapshot, columns))
        return (*names, *(name for name in self.scan.schema.names if name not in names))

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
        cache = self.snapshot.location.session.caches[FETCHERS]
        return cache.get(id(task), lambda: RowFetcher(task))


# Programs take rows of the same columns again and again. A version is kept with its plan, so that
# no other gets its id.
SOURCES: CacheKind[tuple[int, ScanRequest], _Source] = CacheKind(
    name="plans_of_takes",
    most_bytes=32 << 20,
    weight=lambda source: 1024 * (1 + len(source.scan.tasks)),
    most_values=_CACHED_PLANS,
)
FETCHERS: CacheKind[int, RowFetcher] = CacheKind(
    name="open_fragments", most_bytes=32 << 20, weight=lambda _: 4096, most_values=_OPEN_FRAGMENTS
)


def take(snapshot: Snapshot, numbers: RowOffsets, request: ScanRequest) -> pa.Table:
    """Return rows by their number among the live rows in scan order."""
    source = _source(snapshot, request)
    unique, inverse = _unique(numbers)
    return _gather(source, _picks(source, unique), inverse)


def take_from_fragment(
    snapshot: Snapshot, fragment: Fragment, numbers: RowOffsets, request: ScanRequest
) -> pa.Table:
    """Return rows by their number among the live rows of one fragment."""
    rows = live_rows(snapshot.files, snapshot.manifest_at, fragment)
    if len(numbers) and int(numbers.max()) >= rows:
        problem = f"row {int(numbers.max())} is out of range: fragment {fragment.id} has {rows}"
        raise OutOfRangeError(problem, table=snapshot.files.root.uri)
    source = _Source(snapshot, request, _plan(snapshot, request))
    unique, inverse = _unique(numbers)
    offsets = _offsets(snapshot, fragment, unique)
    picks = [(RowFetcher(task), offsets) for task in source.scan.tasks]
    return _gather(source, picks, inverse)


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
    return _gather(source, picks, inverse)


def close_fragments(location: Location) -> None:
    """Close the fragments that takes left open; removed files use disk space while they are."""
    location.session.caches[SOURCES].clear()
    location.session.caches[FETCHERS].clear()


def _source(snapshot: Snapshot, request: ScanRequest) -> _Source:
    """Prepare a version; what was prepared for the same request is used again."""
    key = id(snapshot), request
    cache = snapshot.location.session.caches[SOURCES]
    return cache.get(key, lambda: _Source(snapshot, request, _plan(snapshot, request)))


def _plan(snapshot: Snapshot, request: ScanRequest) -> ScanPlan:
    """Plan with fields of a struct together in that struct, each column once."""
    columns = request.columns
    schema = snapshot.manifest.schema
    if not isinstance(columns, tuple) or len(set(columns) & set(schema.names)) == len(columns):
        return plan(snapshot, request)
    asked = _resolve(snapshot, columns).values()
    paths = tuple(output.path for output in asked if isinstance(output, ColumnOutput))
    cut = snapshot.with_schema(project(schema, paths))
    return plan(cut, replace(request, columns=tuple(dict.fromkeys(map(_column, asked)))))


def _resolve(snapshot: Snapshot, columns: tuple[str, ...]) -> dict[str, Output]:
    unique = tuple(dict.fromkeys(columns))
    outputs = resolve_outputs(snapshot.manifest.schema, ScanRequest(columns=unique))
    return dict(zip(unique, outputs, strict=True))


def _column(output: Output) -> str:
    return output.path[0] if isinstance(output, ColumnOutput) else output.name


def _names(snapshot: Snapshot, columns: tuple[str, ...]) -> Iterator[str]:
    """Yield the columns of the result: those of metadata as often as asked for, others once."""
    resolved = _resolve(snapshot, columns)
    stored = set()
    for output in map(resolved.__getitem__, columns):
        name = _column(output)
        if isinstance(output, MetaOutput) or name not in stored:
            yield name
        stored.add(name)


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


def _gather(source: _Source, picks: _Picks, order: np.ndarray | None) -> pa.Table:
    if len(picks) <= 1:
        batches = [aside(fetcher.fetch, offsets) for fetcher, offsets in picks]
    else:
        with Pool(_THREADS) as pool:
            batches = list(pool.map(RowFetcher.fetch, *zip(*picks, strict=True)))
    table = pa.Table.from_batches(batches, schema=source.scan.schema)
    table = table if order is None else table.take(pa.array(order))
    return table if source.names is None else table.select(source.names)
