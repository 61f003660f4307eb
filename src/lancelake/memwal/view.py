"""View of a table with its MemWAL: the newest row of each key, at a chosen freshness."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CorruptTableError, InvalidRequestError, naming
from lancelake.expr.predicate import Filter, Predicate, predicate
from lancelake.format.arrow_schema import public_schema, storage_schema
from lancelake.format.memwal.region_manifest import Generation, RegionManifest
from lancelake.memwal.generations import open_generation, read_generation
from lancelake.memwal.initialize import details_of
from lancelake.memwal.memtable import MemTable
from lancelake.memwal.region_files import RegionFiles, list_regions
from lancelake.memwal.replay import replayed
from lancelake.memwal.shape import RowShape, live
from lancelake.memwal.writer import RegionWriter
from lancelake.scan import stream
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest

_MOST_MARKS = 1 << 24


class Freshness(Enum):
    """Which rows a read sees."""

    BASE = "base"
    """Rows that are merged into the table."""
    FLUSHED = "flushed"
    """Also rows of generations."""
    DURABLE = "durable"
    """Also rows of the WAL: every write that has returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionRows:
    """Rows of a region that are not merged: generations in ascending order, and memtables."""

    region: uuid.UUID
    generations: tuple[Generation, ...] = ()
    memtables: tuple[MemTable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemWalView:
    """A version of the table, and the rows of its regions that it does not have."""

    base: Snapshot
    shape: RowShape
    regions: tuple[RegionRows, ...]

    def scan(
        self, columns: Sequence[str] | None = None, filter: Filter | None = None
    ) -> pa.RecordBatchReader:
        """Stream the newest rows; the filter applies to them, not to rows that they replace."""
        names = list(self.shape.table.names if columns is None else columns)
        unknown = [name for name in names if name not in self.shape.table.names]
        if unknown:
            raise InvalidRequestError(f"the table has no column {unknown[0]}", column=unknown[0])
        shown = public_schema(self.shape.table.select(tuple(names)))
        batches = (
            pa.RecordBatch.from_arrays([batch.column(n) for n in names], schema=shown)
            for batch in self._rows(names, filter)
            if batch.num_rows
        )
        return pa.RecordBatchReader.from_batches(shown, batches)

    def to_table(
        self, columns: Sequence[str] | None = None, filter: Filter | None = None
    ) -> pa.Table:
        """Return the newest rows."""
        return self.scan(columns, filter).read_all()

    def unmerged(self, region: RegionRows, seen: SeenKeys) -> Iterator[pa.RecordBatch]:
        """Stream the newest row of each key of a region, tombstones included."""
        for memtable in reversed(region.memtables):
            yield from seen.unseen(memtable.newest().combine_chunks().to_batches())
        for generation in reversed(region.generations):
            opened = open_generation(self.base.location, region.region, generation)
            yield from seen.unseen(read_generation(opened, self.shape))

    def _rows(self, names: Sequence[str], filter: Filter | None) -> Iterator[pa.RecordBatch]:
        condition = self._condition(filter)
        seen = SeenKeys(self.shape)
        for region in self.regions:
            # A key belongs to one region, so that what other regions have does not matter.
            for batch in self.unmerged(region, seen):
                kept = live(batch)
                yield kept if condition is None else kept.filter(condition(kept))
        needed = [*names, *(key for key in self.shape.keys if key not in names)]
        request = ScanRequest(columns=tuple(needed), filter=filter)
        yield from seen.others(stream.run(plan(self.base, request)))

    def _condition(self, filter: Filter | None) -> Predicate | None:
        if filter is None:
            return None
        return predicate(filter, self.shape.table, storage_schema(self.shape.table), ())


class SeenKeys:
    """Keys whose newest row was already read."""

    def __init__(self, shape: RowShape) -> None:
        self._shape = shape
        self._keys: pa.Array | None = None
        self._table: _KeyTable | None = None

    def unseen(self, source: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one source whose keys no source before had."""
        found: list[pa.Array] = []
        for batch in source:
            found.append(self._shape.key_array(batch))
            yield self._without_seen(batch, found[-1])
        if found:
            before = [] if self._keys is None else [self._keys]
            self._keys = pa.concat_arrays([*before, *found])
            self._table = _KeyTable.of(self._keys)

    def others(self, source: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows whose keys are not among these."""
        for batch in source:
            if self._keys is None:
                yield batch
            else:
                yield self._without_seen(batch, self._shape.key_array(batch))

    def _without_seen(self, batch: pa.RecordBatch, keys: pa.Array) -> pa.RecordBatch:
        if self._keys is None:
            return batch
        if self._table is not None:
            return batch.filter(pa.array(~self._table.has(keys)))
        return batch.filter(pc.invert(pc.is_in(keys, value_set=self._keys)))


class _KeyTable:
    """A mark for each integer between the least and the greatest key, which is fast to look up."""

    def __init__(self, least: int, marks: npt.NDArray[np.bool_]) -> None:
        self._least = least
        self._marks = marks

    @staticmethod
    def of(keys: pa.Array) -> _KeyTable | None:
        """Return the table of keys; None for other types, and for keys too far apart."""
        if not pa.types.is_integer(keys.type) or pa.types.is_uint64(keys.type) or not len(keys):
            return None
        values = keys.to_numpy(zero_copy_only=False).astype(np.int64)
        least, span = int(values.min()), int(values.max()) - int(values.min())
        if span >= _MOST_MARKS:
            return None
        marks = np.zeros(span + 1, dtype=np.bool_)
        marks[values - least] = True
        return _KeyTable(least, marks)

    def has(self, keys: pa.Array) -> npt.NDArray[np.bool_]:
        """Return for each key whether it is in the table."""
        values = keys.to_numpy(zero_copy_only=False).astype(np.int64)
        last = self._least + len(self._marks) - 1
        inside = (values >= self._least) & (values <= last)
        places = np.clip(values, self._least, last) - self._least
        return np.asarray(self._marks[places] & inside)


def open_view(
    base: Snapshot,
    freshness: Freshness,
    writers: Mapping[uuid.UUID, RegionWriter] | None = None,
) -> MemWalView:
    """Return the view of a version; rows of writers of this process are read from memory.

    The version must be chosen before, since a generation that it does not have must be in the
    manifests that are read now.
    """
    with naming(base.location.uri, base.version):
        shape = RowShape.of(base)
        progress = details_of(base).progress()
        regions: list[RegionRows] = []
        if freshness is not Freshness.BASE:
            for region in list_regions(base.location):
                writer = (writers or {}).get(region)
                found = _region(base, shape, region, freshness, writer)
                if found is not None:
                    manifest, memtables = found
                    merged = progress.get(region, 0)
                    rows = RegionRows(
                        region=region,
                        generations=unmerged_generations(manifest, merged),
                        memtables=memtables,
                    )
                    regions.append(rows)
        return MemWalView(base=base, shape=shape, regions=tuple(regions))


def unmerged_generations(manifest: RegionManifest, merged: int) -> tuple[Generation, ...]:
    """Return the generations after the last merged one, in order; raise if one is missing."""
    found = sorted(
        (g for g in manifest.generations if g.generation > merged), key=lambda g: g.generation
    )
    expected = range(merged + 1, manifest.current_generation)
    if [g.generation for g in found] != list(expected):
        msg = (
            f"generations {merged + 1} to {manifest.current_generation - 1} of region "
            f"{manifest.region_id} are not merged, but its manifest lists "
            f"{[g.generation for g in found]}"
        )
        raise CorruptTableError(msg, region=str(manifest.region_id))
    return tuple(found)


def _region(
    base: Snapshot,
    shape: RowShape,
    region: uuid.UUID,
    freshness: Freshness,
    writer: RegionWriter | None,
) -> tuple[RegionManifest, tuple[MemTable, ...]] | None:
    if writer is not None and freshness is Freshness.DURABLE:
        state = writer.unflushed()
        return state.manifest, state.memtables
    files = RegionFiles.at(base.location, region)
    manifest = files.latest()
    if manifest is None:
        return None
    if freshness is Freshness.FLUSHED:
        return manifest, ()
    last = files.last_position()
    return manifest, tuple(replayed(files, manifest, shape, last=last))
