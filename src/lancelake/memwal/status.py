"""Status of a MemWAL: its regions, and how many rows are not merged."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.format.memwal.details import MemWalDetails
from lancelake.format.memwal.region_manifest import Generation, RegionManifest
from lancelake.memwal.initialize import details_of
from lancelake.memwal.region_files import RegionFiles, list_regions
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


@names_table
def wal_status(base: Snapshot) -> WalStatus:
    """Read the state of all regions; the version must be chosen before."""
    details = details_of(base)
    progress = details.progress()
    found = (
        _region(RegionFiles.at(base.location, region), progress.get(region, 0))
        for region in list_regions(base.location)
    )
    regions = tuple(region for region in found if region is not None)
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
