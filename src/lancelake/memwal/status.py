"""Status of a MemWAL, and its last entries."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CorruptTableError, InvalidRequestError, ObjectNotFoundError, naming
from lancelake.format.frozen import FrozenMap
from lancelake.format.memwal import wal_files
from lancelake.format.memwal.details import MemWalDetails
from lancelake.format.memwal.region_manifest import Generation, RegionManifest
from lancelake.memwal.region import RegionFiles, details_of, region_files
from lancelake.memwal.shape import RowShape
from lancelake.memwal.view import unmerged_generations


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionStatus:
    """One region: what is merged, flushed, and only in the WAL."""

    region: uuid.UUID
    manifest: RegionManifest
    merged_generation: int
    """Last generation that is merged into the table; 0 for none."""
    unmerged: tuple[Generation, ...]
    """Flushed generations that are not merged, in order."""
    tail_entries: int
    """Number of WAL entries with rows that are in no generation."""
    tail_rows: int
    """Number of rows in them; a key counts as often as it was written."""

    @property
    def flushed_rows(self) -> int | None:
        """Number of rows of generations that are not merged; None if a writer did not record it."""
        counts = [generation.physical_rows for generation in self.unmerged]
        return None if None in counts else sum(count or 0 for count in counts)

    def facts(self) -> dict[str, str | bool | int | None]:
        """Return the state by the names that every face shows."""
        return {
            "region": str(self.region),
            "is_sealed": not self.manifest.is_active,
            "writer_epoch": self.manifest.writer_epoch,
            "current_generation": self.manifest.current_generation,
            "merged_generation": self.merged_generation,
            "unmerged_generations": len(self.unmerged),
            "flushed_rows": self.flushed_rows,
            "tail_entries": self.tail_entries,
            "tail_rows": self.tail_rows,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WalStatus:
    """The MemWAL of a version of the table."""

    version: int
    details: MemWalDetails
    regions: tuple[RegionStatus, ...]


def wal_status(base: Snapshot) -> WalStatus:
    """Read the state of all regions; the version must be chosen before."""
    details = details_of(base)
    progress = details.progress()
    states = (
        _region(files, progress.get(files.region, 0)) for files in region_files(base.location)
    )
    regions = tuple(state for state in states if state is not None)
    return WalStatus(version=base.version, details=details, regions=regions)


def _region(files: RegionFiles, merged: int) -> RegionStatus | None:
    manifest = files.latest()
    if manifest is None:
        return None
    entries = [files.entry(p) for p in files.positions() if p > manifest.replay_after]
    tail = [
        entry
        for entry in entries
        if not entry.is_sentinel
        and (entry.generation is None or entry.generation >= manifest.current_generation)
    ]
    return RegionStatus(
        region=files.region,
        manifest=manifest,
        merged_generation=merged,
        unmerged=unmerged_generations(manifest, merged),
        tail_entries=len(tail),
        tail_rows=sum(entry.num_rows for entry in tail),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TailEntry:
    """A WAL entry with its rows, tombstones included, in the table's columns."""

    position: int
    writer_epoch: int
    generation: int | None
    is_sentinel: bool
    units: FrozenMap[str, int]
    """Last batch of each streaming query in the region, up to this entry."""
    rows: pa.Table


def read_entries(
    base: Snapshot, region: uuid.UUID, after: int | None = None
) -> Iterator[TailEntry]:
    """Yield the WAL entries of a region after a position, by default those not flushed.

    Entries that garbage collection has removed are skipped.
    """
    with naming(base.location.uri, base.version):
        files = RegionFiles.at(base.location, region)
        manifest = files.latest()
        if manifest is None:
            raise InvalidRequestError(f"the table has no region {region}", region=str(region))
        start = manifest.replay_after if after is None else after
        shape = RowShape.of(base)
        for position in files.positions():
            if position > start:
                entry = _read(files, shape, position)
                if entry is not None:
                    yield entry
                elif position > manifest.replay_after:
                    msg = f"the WAL of region {region} has lost the entry at position {position}"
                    raise CorruptTableError(msg, region=str(region))


def _read(files: RegionFiles, shape: RowShape, position: int) -> TailEntry | None:
    try:
        data = files.entry_bytes(position)
    except ObjectNotFoundError:
        return None
    entry = wal_files.decode(data, path=wal_files.wal_entry(files.region, position))
    batches = [shape.adopted(batch) for batch in entry.batches]
    return TailEntry(
        position=position,
        writer_epoch=entry.writer_epoch,
        generation=entry.generation,
        is_sentinel=entry.is_sentinel,
        units=entry.units,
        rows=pa.Table.from_batches(batches, schema=shape.arrow),
    )
