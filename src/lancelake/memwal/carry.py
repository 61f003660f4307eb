"""Progress with which a new MemWAL continues regions of an earlier one."""

from __future__ import annotations

from lancelake.errors import InvalidRequestError
from lancelake.format.merged_generation import MergedGeneration
from lancelake.memwal.region_files import RegionFiles, list_regions
from lancelake.storage.location import Location


def carried(location: Location) -> tuple[MergedGeneration, ...]:
    """Return the progress with which a new MemWAL continues retired regions.

    Raise if a region has rows: they belong to an earlier MemWAL.
    """
    marks = []
    for region in list_regions(location):
        files = RegionFiles.at(location, region)
        manifest = files.latest()
        last = files.last_position()
        if manifest is None or manifest.generations or last > manifest.replay_after:
            raise InvalidRequestError(
                f"{location.uri} has rows in region {region} of an earlier MemWAL",
                action="Drop the earlier MemWAL with `discard` if the rows are not needed.",
            )
        marks.append(MergedGeneration(region_id=region, generation=manifest.current_generation - 1))
    return tuple(mark for mark in marks if mark.generation)
