"""Merge of regions by tasks: each reads its own generations, and the driver sees row addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.clock import SystemIds
from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_writer import write_fragments
from lancelake.data.read_ahead import read_ahead
from lancelake.data.write_task import WriteTask
from lancelake.engine import wire
from lancelake.engine.port import Engine, Job
from lancelake.errors import CorruptTableError
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_bytes import from_bytes, to_bytes
from lancelake.format.row_address import by_fragment
from lancelake.format.schema import Field
from lancelake.index.row_ids import BoolArray
from lancelake.memwal.pinned import PinnedView
from lancelake.memwal.shape import TOMBSTONE, RowShape
from lancelake.memwal.view import MemWalView, SeenKeys
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.table.merge.key_index import with_keys
from lancelake.table.merge.keys import key_fields
from lancelake.table.merge.match import Addresses, MatchKeys, Pairs, balanced, read_pairs
from lancelake.table.merge.row_builder import Recipe, copied_from_source
from lancelake.table.merge.run import MergeCounts, Prepared, update_operation
from lancelake.table.merge.scope import SOURCE
from lancelake.table.merge.source import RowNumbers, SourceRows
from lancelake.table.merge.source_keys import SOURCE_ROW, SourceKeys
from lancelake.table.merge.target import TargetRows, row_ids
from lancelake.table.publish import CommitChoices, new_transaction
from lancelake.table.row_steps.files import row_files, with_row_ids
from lancelake.table.row_steps.find import divided
from lancelake.table.row_steps.mark_deleted import mark_deleted_during
from lancelake.txn.inserted_keys import InsertedKeys, collected, united

_ROWS_PER_TASK = 250_000
_TASK_BYTES = 256 << 20
_KEYS_AT_ONCE = 8 << 20
_BATCH_ROWS = 1 << 17
# The number of a row: the position of its region in the view, and its place in the region.
_PLACE_BITS = 40
_OPEN_KEYS = 2


def prepare_regions(
    base: Snapshot, view: PinnedView, engine: Engine, choices: CommitChoices
) -> Prepared:
    """Perform all steps of a merge of generations except its commit."""
    pairs = _matched(base, view, engine)
    parts: list[_Written] = []

    def write() -> tuple[Fragment, ...]:
        parts.extend(_written(base, view, pairs, engine))
        return tuple(f for part in parts for f in from_bytes(part.fragments))

    gone, added = mark_deleted_during(
        base, by_fragment(pairs.target), choices.surroundings.ids, write
    )
    keys = united([part.keys for part in parts])
    operation = update_operation(base, gone, added, keys)
    return Prepared(
        transaction=new_transaction(operation, base.version, choices),
        affected=gone.affected,
        inserted_keys=keys,
        counts=MergeCounts(
            inserted=sum(part.inserted for part in parts),
            updated=sum(part.updated for part in parts),
            deleted=sum(part.deleted for part in parts),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRegions:
    """Finds the rows of some fragments whose keys the regions have."""

    view: PinnedView
    scans: tuple[ScanTask, ...]

    @property
    def memory_bytes(self) -> int:
        """Estimate of the memory that a run takes."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Return the numbers of rows of the regions, and the addresses of the table's rows."""
        base, known = self.view.opened().base, _keys(self.view)
        scans = with_keys(base, known.fields, known.keys, self.scans)
        if not scans:
            return wire.dumps([])
        found = [
            MatchKeys(
                scans=tuple(scans),
                fields=known.fields,
                keys=known.numbered.slice(start, _KEYS_AT_ONCE),
                are_unique=known.keys.are_unique,
            ).run()
            for start in range(0, known.numbered.num_rows, _KEYS_AT_ONCE)
        ]
        return wire.dumps(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRegions:
    """Writes the newest rows of some regions to new files."""

    view: PinnedView
    places: tuple[int, ...]
    """Positions of the regions in the view."""
    pairs: Pairs
    """Rows of these regions that replace or delete rows of the table, by number."""
    write: WriteTask

    @property
    def memory_bytes(self) -> int:
        """Estimate of the memory that a run takes."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Write the rows and return a `_Written` as a message."""
        view = self.view.opened()
        rows = _RegionWrite(view, self.pairs)
        total = sum(
            generation.physical_rows or _ROWS_PER_TASK
            for place in self.places
            for generation in self.view.regions[place].generations
        )
        with closing(read_ahead(rows.batches(self.places), rows=total)) as batches:
            reader = pa.RecordBatchReader.from_batches(rows.recipe.schema, batches)
            fragments = write_fragments(self.write, reader, ids=SystemIds())
        if rows.row_ids:
            fragments = with_row_ids(fragments, rows.row_ids)
        return wire.dumps(rows.written(to_bytes(fragments)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """Result of `WriteRegions`."""

    fragments: bytes
    keys: InsertedKeys
    inserted: int
    updated: int
    deleted: int


class _RegionWrite:
    """Rows of regions for the table's files, changed rows before new ones."""

    def __init__(self, view: MemWalView, pairs: Pairs) -> None:
        schema = view.base.manifest.schema
        self.recipe: Recipe = copied_from_source(schema, schema.names, otherwise=None)
        self.row_ids: list[pa.Array] = []
        order = np.argsort(pairs.source, kind="stable")
        self._numbers, self._addresses = pairs.source[order], pairs.target[order]
        self._view = view
        self._fields = schema.primary_key()
        self._target = (
            TargetRows.of(view.base, (), with_row_id=True)
            if view.base.manifest.has_stable_row_ids
            else None
        )
        self._keys: list[list[pa.Array]] = []
        self._inserted = self._updated = self._deleted = 0

    def written(self, fragments: bytes) -> _Written:
        """Return the result, after the batches were written as fragments."""
        return _Written(
            fragments=fragments,
            keys=collected([field.id for field in self._fields], self._keys),
            inserted=self._inserted,
            updated=self._updated,
            deleted=self._deleted,
        )

    def batches(self, places: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Yield the rows; changed ones first, since row ids are those of the first rows."""
        for place in places:
            yield from self._changed(place)
        for place in places:
            yield from self._new(place)

    def _changed(self, place: int) -> Iterator[pa.RecordBatch]:
        for rows, first in self._rows(place):
            start, stop = np.searchsorted(self._numbers, [first, first + rows.num_rows])
            if start == stop:
                continue
            numbers, addresses = self._numbers[start:stop] - first, self._addresses[start:stop]
            is_gone = _tombstones(rows)[numbers]
            self._deleted += int(is_gone.sum())
            self._updated += int((~is_gone).sum())
            if is_gone.all():
                continue
            if self._target is not None:
                self.row_ids.append(_row_ids(self._target, addresses[~is_gone]))
            yield self.recipe.make({SOURCE: rows.take(pa.array(numbers[~is_gone]))})

    def _new(self, place: int) -> Iterator[pa.RecordBatch]:
        for rows, first in self._rows(place):
            start, stop = np.searchsorted(self._numbers, [first, first + rows.num_rows])
            is_new = ~_tombstones(rows)
            is_new[self._numbers[start:stop] - first] = False
            if not is_new.any():
                continue
            made = self.recipe.make({SOURCE: rows.filter(pa.array(is_new))})
            self._inserted += made.num_rows
            self._keys.append([made.column(field.name) for field in self._fields])
            yield made

    def _rows(self, place: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield the newest rows of a region, each batch with the number of its first row."""
        first = place << _PLACE_BITS
        region = self._view.regions[place]
        for rows in self._view.unmerged(region, SeenKeys(self._view.shape)):
            if rows.num_rows:
                yield rows, first
            first += rows.num_rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Keys:
    """Keys of the rows of all regions."""

    fields: tuple[Field, ...]
    keys: SourceKeys
    numbered: pa.Table


@lru_cache(maxsize=_OPEN_KEYS)
def _keys(view: PinnedView) -> _Keys:
    """Read the keys, once for all tasks of a process."""
    opened = view.opened()
    narrow = replace(opened, shape=opened.shape.keys_only())
    tables: list[pa.Table] = []
    numbers: list[RowNumbers] = []
    for place, region in enumerate(narrow.regions):
        found = pa.Table.from_batches(
            narrow.unmerged(region, SeenKeys(narrow.shape)), schema=narrow.shape.arrow
        )
        tables.append(found)
        numbers.append(np.arange(found.num_rows, dtype=np.int64) + (place << _PLACE_BITS))
    rows = pa.concat_tables(tables).combine_chunks()
    _ensure_once(narrow.shape, rows)
    schema = opened.base.manifest.schema
    fields = key_fields(narrow.shape.keys, schema)
    source = SourceRows(rows=rows, num_rows=rows.num_rows, schema=rows.schema, nbytes=rows.nbytes)
    keys = SourceKeys.of(source, fields, narrow.shape.keys)
    numbered = keys.table.append_column(SOURCE_ROW, pa.array(np.concatenate(numbers)))
    return _Keys(fields=fields, keys=keys, numbered=numbered)


def _ensure_once(shape: RowShape, rows: pa.Table) -> None:
    different: int = pc.count_distinct(shape.key_array(rows)).as_py()
    if different != rows.num_rows:
        raise CorruptTableError(
            f"{rows.num_rows - different} keys have rows in more than one region of the MemWAL"
        )


def _matched(base: Snapshot, view: PinnedView, engine: Engine) -> Pairs:
    names = RowShape.of(base).keys
    request = ScanRequest(
        columns=names, with_row_address=True, batch_size=_BATCH_ROWS, remembers_small=True
    )
    scans = divided(plan(base, request).tasks, engine.parallelism)
    tasks = [MatchRegions(view=view, scans=group) for group in balanced(scans, engine.parallelism)]
    job = Job(description=f"match keys of {base.location.uri}", tasks=tasks)
    return read_pairs(part for result in engine.run(job) for part in _loaded(result))


def _loaded(result: bytes) -> list[bytes]:
    return cast("list[bytes]", wire.loads(result))


def _written(base: Snapshot, view: PinnedView, pairs: Pairs, engine: Engine) -> Iterator[_Written]:
    tasks = [
        WriteRegions(
            view=view,
            places=places,
            pairs=pairs.where(np.isin(pairs.source >> _PLACE_BITS, places)),
            write=row_files(base),
        )
        for places in _grouped(view, engine.parallelism)
    ]
    job = Job(description=f"write rows of {base.location.uri}", tasks=tasks)
    for result in engine.run(job):
        yield cast("_Written", wire.loads(result))


def _grouped(view: PinnedView, parallelism: int) -> list[tuple[int, ...]]:
    """Distribute regions over tasks; few rows are written by one, so that files are not small."""
    sizes = [
        sum(generation.physical_rows or _ROWS_PER_TASK for generation in region.generations)
        for region in view.regions
    ]
    count = min(parallelism, len(sizes), -(-sum(sizes) // _ROWS_PER_TASK))
    groups: list[list[int]] = [[] for _ in range(max(1, count))]
    totals = [0] * len(groups)
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        smallest = totals.index(min(totals))
        groups[smallest].append(place)
        totals[smallest] += sizes[place]
    return [tuple(sorted(group)) for group in groups]


def _tombstones(rows: pa.RecordBatch) -> BoolArray:
    return np.asarray(rows.column(TOMBSTONE).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _row_ids(target: TargetRows, addresses: Addresses) -> pa.Array:
    order = np.argsort(addresses, kind="stable")
    _, found = row_ids(target.at(addresses[order]))
    return found.take(pa.array(np.argsort(order)))
