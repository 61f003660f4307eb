"""View of a table with the rows of its MemWAL."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.caches import CacheKind
from lancelake.commit.snapshot import AtVersion, Snapshot, open_snapshot
from lancelake.errors import CorruptTableError, InvalidRequestError, naming, suggestion
from lancelake.expr.predicate import Filter, Predicate, predicate
from lancelake.format.arrow_schema import public_schema, storage_schema
from lancelake.format.frozen import computed_once
from lancelake.format.memwal.region_manifest import Generation, RegionManifest
from lancelake.memwal.generations import (
    ADDRESS,
    MemTable,
    open_generation,
    read_generation,
    replayed,
)
from lancelake.memwal.region import RegionFiles, details_of, region_files
from lancelake.memwal.shape import RowShape, live
from lancelake.memwal.writer import RegionWriter
from lancelake.scan import stream
from lancelake.scan.live_rows import count_rows
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectStore
from lancelake.table.merge.source import RowNumbers, SourceKeys, SourceRows, key_fields

_MOST_MARKS = 1 << 24
# Looking up the keys of a batch has a fixed cost, however few rows it has.
_BATCH_ROWS = 1 << 16
PLACE_BITS = 40
"""Bits of a row's number below the position of its region in a view."""
_GENERATION = pa.field("_memtable_gen", pa.uint64(), nullable=False)


class Freshness(Enum):
    """Which rows a read sees."""

    BASE = "base"
    """Rows that are merged into the table."""
    FLUSHED = "flushed"
    """Also rows of generations."""
    DURABLE = "durable"
    """Also rows of the WAL: every write that has returned."""

    @staticmethod
    def named(name: str | Freshness) -> Freshness:
        """Return the freshness of a name."""
        try:
            return Freshness(name)
        except ValueError as error:
            names = ", ".join(each.value for each in Freshness)
            raise InvalidRequestError(
                f"invalid freshness {name!r}; valid values: {names}", freshness=str(name)
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRequest:
    """What a scan of a view returns."""

    columns: tuple[str, ...] | None = None
    """Columns of the table, by default all."""
    filter: Filter | None = None
    """Applies to the newest rows, not to rows that they replace."""
    limit: int | None = None
    offset: int = 0
    with_generation: bool = False
    """Add `_memtable_gen`: the generation of a row, 0 for rows of the table."""
    with_row_address: bool = False
    """Add `_rowaddr`: the address in the table or the generation, null for rows in memory."""

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        if self.offset < 0 or (self.limit is not None and self.limit < 0):
            raise InvalidRequestError("limit and offset must not be negative")

    @property
    def extra(self) -> list[pa.Field]:
        """Columns that the table does not have."""
        address = [ADDRESS] if self.with_row_address else []
        return [*address, *([_GENERATION] if self.with_generation else [])]


_EVERYTHING = ViewRequest()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionRows:
    """Rows of a region that are not merged: generations in ascending order, and memtables."""

    region: uuid.UUID
    generations: tuple[Generation, ...] = ()
    memtables: tuple[MemTable, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class MemWalView:
    """A version of the table, and the rows of its regions that it does not have."""

    base: Snapshot
    shape: RowShape
    regions: tuple[RegionRows, ...]

    def scan(self, request: ViewRequest = _EVERYTHING) -> pa.RecordBatchReader:
        """Stream the newest rows."""
        with naming(self.base.location.uri, self.base.version):
            names = self._names(request)
            table = public_schema(self.shape.table.select(tuple(names)))
            shown = pa.schema([*table, *request.extra], table.metadata)
            return pa.RecordBatchReader.from_batches(shown, self._shown(request, names, shown))

    def to_table(
        self, columns: Sequence[str] | None = None, filter: Filter | None = None
    ) -> pa.Table:
        """Return the newest rows."""
        names = None if columns is None else tuple(columns)
        return self.scan(ViewRequest(columns=names, filter=filter)).read_all()

    def count_rows(self, filter: Filter | None = None) -> int:
        """Count the newest rows."""
        if filter is None and not any(r.generations or r.memtables for r in self.regions):
            return count_rows(self.base)
        rows = self.scan(ViewRequest(columns=self.shape.keys, filter=filter))
        return sum(batch.num_rows for batch in rows)

    def unmerged(self, region: RegionRows, seen: SeenKeys) -> Iterator[pa.RecordBatch]:
        """Stream the newest row of each key of a region, tombstones included."""
        yield from (batch for _, batch in self._sources(region, seen))

    @computed_once
    def replaced_keys(self) -> SeenKeys:
        """The keys of all rows of the regions."""
        seen = SeenKeys(self.shape)
        seen.add(self._key_rows())
        return seen

    @computed_once
    def numbered_keys(self) -> SourceKeys:
        """The keys of the newest rows; a row's number has the place of its region above its own."""
        narrow = replace(self, shape=self.shape.keys_only())
        names = narrow.shape.keys
        tables: list[pa.Table] = []
        numbers: list[RowNumbers] = []
        for place, region in enumerate(self.regions):
            rows = pa.Table.from_batches(
                narrow.unmerged(region, SeenKeys(narrow.shape)), schema=narrow.shape.arrow
            )
            tables.append(rows)
            numbers.append(np.arange(rows.num_rows, dtype=np.int64) + (place << PLACE_BITS))
        every = pa.concat_tables(tables).combine_chunks()
        repeated = every.num_rows - pc.count_distinct(narrow.shape.key_array(every)).as_py()
        if repeated:
            raise CorruptTableError(
                f"{repeated} keys have rows in more than one region of the MemWAL"
            )
        source = SourceRows(
            rows=every, num_rows=every.num_rows, schema=every.schema, nbytes=every.nbytes
        )
        keys = SourceKeys.of(source, key_fields(names, self.base.manifest.schema), names)
        return replace(keys, numbers=np.concatenate(numbers))

    def _key_rows(self) -> Iterator[pa.RecordBatch]:
        for region in self.regions:
            for memtable in region.memtables:
                yield from memtable.newest().select(list(self.shape.keys)).to_batches()
            for generation in region.generations:
                opened = open_generation(self.base.location, region.region, generation)
                yield from _generation_keys(opened, self.shape)

    def _sources(
        self, region: RegionRows, seen: SeenKeys, *, with_addresses: bool = False
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the newest rows of a region, each batch with its generation."""
        for memtable in reversed(region.memtables):
            for batch in seen.unseen(memtable.newest().combine_chunks().to_batches()):
                rows = batch
                if with_addresses:
                    rows = batch.append_column(ADDRESS, pa.nulls(batch.num_rows, ADDRESS.type))
                yield memtable.generation, rows
        for generation in reversed(region.generations):
            opened = open_generation(self.base.location, region.region, generation)
            source = read_generation(opened, self.shape, with_addresses=with_addresses)
            for batch in seen.unseen(source):
                yield generation.generation, batch

    def _names(self, request: ViewRequest) -> tuple[str, ...]:
        own = self.shape.table.names
        if request.columns is None:
            return own
        for name in request.columns:
            if name not in own:
                raise InvalidRequestError(
                    f"the table has no column {name}",
                    column=name,
                    action=suggestion(name, own, "columns"),
                )
        return request.columns

    def _shown(
        self, request: ViewRequest, names: Sequence[str], shown: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        skip, left = request.offset, request.limit
        if left == 0:
            return
        for generation, batch in self._rows(request, names):
            rows = batch.slice(min(skip, batch.num_rows))
            skip -= batch.num_rows - rows.num_rows
            if left is not None:
                rows = rows.slice(0, left)
                left -= rows.num_rows
            if not rows.num_rows:
                continue
            arrays = [rows.column(name) for name in names]
            if request.with_row_address:
                arrays.append(rows.column(ADDRESS.name))
            if request.with_generation:
                arrays.append(pa.repeat(pa.scalar(generation, _GENERATION.type), rows.num_rows))
            yield pa.RecordBatch.from_arrays(arrays, schema=shown)
            if left == 0:
                return

    def _rows(
        self, request: ViewRequest, names: Sequence[str]
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        condition = self._condition(request.filter)
        seen = SeenKeys(self.shape)
        for region in self.regions:
            # A key belongs to one region, so that what other regions have does not matter.
            sources = self._sources(region, seen, with_addresses=request.with_row_address)
            for generation, batch in sources:
                rows = live(batch)
                yield generation, rows if condition is None else rows.filter(condition(rows))
        needed = [*names, *(key for key in self.shape.keys if key not in names)]
        scan = ScanRequest(
            columns=tuple(needed),
            filter=request.filter,
            with_row_address=request.with_row_address,
            batch_size=_BATCH_ROWS,
        )
        shown = [*names, *([ADDRESS.name] if request.with_row_address else [])]
        for batch in seen.others(stream.run(plan(self.base, scan)), shown):
            yield 0, batch

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
        keys: list[pa.Array] = []
        for batch in source:
            keys.append(self._shape.key_array(batch))
            yield self._without_seen(batch, keys[-1])
        self._extend(keys)

    def add(self, source: Iterable[pa.RecordBatch]) -> None:
        """Add the keys of rows."""
        self._extend([self._shape.key_array(batch) for batch in source])

    def others(
        self, source: Iterable[pa.RecordBatch], columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows whose keys are not among these, with all or some of their columns."""
        for batch in source:
            shown = batch if columns is None else batch.select(columns)
            if self._keys is None:
                yield shown
            else:
                yield self._without_seen(shown, self._shape.key_array(batch))

    def _extend(self, keys: Sequence[pa.Array]) -> None:
        if keys:
            before = [] if self._keys is None else [self._keys]
            self._keys = pa.concat_arrays([*before, *keys])
            self._table = _KeyTable.of(self._keys)

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
        # The last mark is that of all other keys.
        marks = np.zeros(span + 2, dtype=np.bool_)
        marks[values - least] = True
        return _KeyTable(least, marks)

    def has(self, keys: pa.Array) -> npt.NDArray[np.bool_]:
        """Return for each key whether it is in the table."""
        values = keys.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        # A key below the least becomes a large number.
        places = (values - np.int64(self._least)).view(np.uint64)
        places = np.minimum(places, np.uint64(len(self._marks) - 1), out=places)
        return np.asarray(self._marks[places.view(np.int64)])


def open_view(
    base: Snapshot,
    freshness: Freshness,
    writers: Mapping[uuid.UUID, RegionWriter] | None = None,
) -> MemWalView:
    """Return the view of a version; rows of writers of this process are read from memory.

    The version must be chosen before, since a generation that it does not have must be in the
    manifests that are read now.
    """
    shape = RowShape.of(base)
    progress = details_of(base).progress()
    regions: list[RegionRows] = []
    for files in region_files(base.location, None if freshness is not Freshness.BASE else ()):
        writer = (writers or {}).get(files.region)
        state = _read_region(files, shape, freshness, writer)
        if state is None:
            continue
        manifest, memtables = state
        merged = progress.get(files.region, 0)
        if writer is not None:
            # Its last flush may be merged before the writer itself knows of it.
            memtables = tuple(t for t in memtables if t.generation > merged)
            merged = min(merged, manifest.current_generation - 1)
        rows = RegionRows(
            region=files.region,
            generations=unmerged_generations(manifest, merged),
            memtables=memtables,
        )
        regions.append(rows)
    return MemWalView(base=base, shape=shape, regions=tuple(regions))


def unmerged_generations(manifest: RegionManifest, merged: int) -> tuple[Generation, ...]:
    """Return the generations after the last merged one, in order; raise if one is missing."""
    generations = sorted(
        (g for g in manifest.generations if g.generation > merged), key=lambda g: g.generation
    )
    if merged >= manifest.current_generation:
        msg = (
            f"generation {merged} of region {manifest.region_id} counts as merged, but the region "
            f"is at generation {manifest.current_generation}"
        )
        raise CorruptTableError(msg, region=str(manifest.region_id))
    numbers = [g.generation for g in generations]
    count = manifest.current_generation - merged - 1
    if len(numbers) != count or numbers != list(range(merged + 1, manifest.current_generation)):
        msg = (
            f"generations {merged + 1} to {manifest.current_generation - 1} of region "
            f"{manifest.region_id} are not merged into this version, but some have been removed "
            f"since; the remaining ones are {numbers}"
        )
        raise CorruptTableError(
            msg,
            region=str(manifest.region_id),
            action="Read the newest version, or an old one without the MemWAL.",
        )
    return tuple(generations)


def _read_region(
    files: RegionFiles, shape: RowShape, freshness: Freshness, writer: RegionWriter | None
) -> tuple[RegionManifest, tuple[MemTable, ...]] | None:
    if writer is not None and freshness is Freshness.DURABLE:
        state = writer.unflushed()
        return state.manifest, state.memtables
    manifest = files.latest()
    while manifest is not None:
        if freshness is Freshness.FLUSHED:
            return manifest, ()
        try:
            return manifest, tuple(replayed(files, manifest, shape, last=files.last_position()))
        except CorruptTableError:
            # Entries that were flushed since may be collected already.
            seen, manifest = manifest, files.latest()
            if manifest == seen:
                raise
    return None


_OPEN_VIEWS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedRegion:
    """Generations and WAL entries of a region that a version does not have."""

    manifest: RegionManifest
    generations: tuple[Generation, ...]
    last: int
    """Position of the last WAL entry to read."""

    @property
    def is_empty(self) -> bool:
        """Whether the region surely has no rows to read."""
        return not self.generations and self.last <= self.manifest.replay_after

    def rows(self, base: Snapshot, shape: RowShape) -> RegionRows:
        """Return the rows that were pinned."""
        files = RegionFiles.at(base.location, self.manifest.region_id)
        memtables = tuple(replayed(files, self.manifest, shape, last=self.last))
        return RegionRows(
            region=self.manifest.region_id, generations=self.generations, memtables=memtables
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedView:
    """A version of a table, and what its regions had when it was pinned."""

    location: Location
    main: Location
    version: int
    regions: tuple[PinnedRegion, ...]

    def opened(self) -> MemWalView:
        """Open the view, once for all calls of a process."""
        return self.location.session.caches[VIEWS].get(self, self._open)

    def of(self, base: Snapshot) -> MemWalView:
        """Return the view of the version that was pinned."""
        shape = RowShape.of(base)
        regions = tuple(region.rows(base, shape) for region in self.regions)
        return MemWalView(base=base, shape=shape, regions=regions)

    def _open(self) -> MemWalView:
        base = open_snapshot(self.location, AtVersion(self.version), main=self.main)
        with naming(base.location.uri, base.version):
            return self.of(base)


VIEWS: CacheKind[PinnedView, MemWalView] = CacheKind(
    name="memwal_views",
    most_bytes=512 << 20,
    weight=lambda view: 4096 + sum(m.nbytes for rows in view.regions for m in rows.memtables),
    most_values=_OPEN_VIEWS,
)
"""Views that tasks have opened, with the keys that they have read."""


def pin(
    base: Snapshot,
    freshness: Freshness,
    regions: Sequence[uuid.UUID] | None = None,
    *,
    store: ObjectStore | None = None,
) -> PinnedView:
    """Pin the view of a version, by default of all regions.

    The version must be chosen before, as for `open_view`. The manifests of regions are in the
    table's own store unless another is given.
    """
    pinned: list[PinnedRegion] = []
    progress = details_of(base).progress()
    wanted = () if freshness is Freshness.BASE else regions
    for files in region_files(base.location, wanted, store):
        manifest = files.latest()
        if manifest is None:
            continue
        region = PinnedRegion(
            manifest=manifest,
            generations=unmerged_generations(manifest, progress.get(files.region, 0)),
            last=files.last_position() if freshness is Freshness.DURABLE else 0,
        )
        if not region.is_empty:
            pinned.append(region)
    return PinnedView(
        location=base.location,
        main=base.main_location,
        version=base.version,
        regions=tuple(pinned),
    )


def _generation_keys(opened: Snapshot, shape: RowShape) -> Iterator[pa.RecordBatch]:
    own = {field.id: field.name for field in opened.manifest.schema.fields}
    wanted = [field.id for name in shape.keys for field in shape.table.fields if field.name == name]
    missing = [number for number in wanted if number not in own]
    if missing:
        raise CorruptTableError(
            f"generation {opened.location.uri} has no key column with field id {missing[0]}"
        )
    columns = tuple(own[number] for number in wanted)
    for batch in stream.run(plan(opened, ScanRequest(columns=columns))):
        yield pa.RecordBatch.from_arrays(
            [batch.column(name) for name in columns], names=list(shape.keys)
        )
