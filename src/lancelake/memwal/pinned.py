"""Pinned views: what a view reads, as a small value that other processes open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CorruptTableError, naming
from lancelake.format.memwal.region_manifest import Generation, RegionManifest
from lancelake.memwal.generations import open_generation
from lancelake.memwal.initialize import details_of
from lancelake.memwal.region_files import RegionFiles, list_regions
from lancelake.memwal.replay import replayed
from lancelake.memwal.shape import RowShape
from lancelake.memwal.view import (
    Freshness,
    MemWalView,
    RegionRows,
    SeenKeys,
    unmerged_generations,
)
from lancelake.scan import stream
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.storage.location import Location
from lancelake.table.open import AtVersion, open_snapshot

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedView:
    """A version of a table, and what its regions had when it was pinned."""

    location: Location
    main: Location
    version: int
    regions: tuple[PinnedRegion, ...]

    def opened(self) -> MemWalView:
        """Open the view, once for all calls of a process."""
        return _opened(self)

    def replaced_keys(self) -> SeenKeys:
        """Return the keys of all rows of the regions, read once for all calls of a process."""
        return _keys(self)


def pin(base: Snapshot, freshness: Freshness) -> PinnedView:
    """Pin the view of a version, which must be chosen before, as for `open_view`."""
    regions: list[PinnedRegion] = []
    with naming(base.location.uri, base.version):
        progress = details_of(base).progress()
        for region in list_regions(base.location) if freshness is not Freshness.BASE else ():
            files = RegionFiles.at(base.location, region)
            manifest = files.latest()
            if manifest is None:
                continue
            found = PinnedRegion(
                manifest=manifest,
                generations=unmerged_generations(manifest, progress.get(region, 0)),
                last=files.last_position() if freshness is Freshness.DURABLE else 0,
            )
            if not found.is_empty:
                regions.append(found)
    return PinnedView(
        location=base.location,
        main=base.main_location,
        version=base.version,
        regions=tuple(regions),
    )


@lru_cache(maxsize=_OPEN_VIEWS)
def _opened(pinned: PinnedView) -> MemWalView:
    base = open_snapshot(pinned.location, AtVersion(pinned.version), main=pinned.main)
    with naming(base.location.uri, base.version):
        shape = RowShape.of(base)
        rows = tuple(_rows(base, shape, region) for region in pinned.regions)
    return MemWalView(base=base, shape=shape, regions=rows)


def _rows(base: Snapshot, shape: RowShape, region: PinnedRegion) -> RegionRows:
    files = RegionFiles.at(base.location, region.manifest.region_id)
    memtables = tuple(replayed(files, region.manifest, shape, last=region.last))
    return RegionRows(
        region=region.manifest.region_id, generations=region.generations, memtables=memtables
    )


@lru_cache(maxsize=_OPEN_VIEWS)
def _keys(pinned: PinnedView) -> SeenKeys:
    view = _opened(pinned)
    seen = SeenKeys(view.shape)
    seen.add(_key_rows(view))
    return seen


def _key_rows(view: MemWalView) -> Iterator[pa.RecordBatch]:
    for region in view.regions:
        for memtable in region.memtables:
            yield from memtable.newest().select(list(view.shape.keys)).to_batches()
        for generation in region.generations:
            opened = open_generation(view.base.location, region.region, generation)
            yield from _generation_keys(opened, view.shape)


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
