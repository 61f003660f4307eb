"""Progress with which a new MemWAL continues regions of an earlier one."""

from __future__ import annotations

import uuid

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.format.merged_generation import MergedGeneration
from lancelake.memwal.ended import was_replaced
from lancelake.memwal.region_files import RegionFiles, list_regions
from lancelake.memwal.retire import retire_regions


def carried(base: Snapshot) -> tuple[MergedGeneration, ...]:
    """Retire the regions of an earlier MemWAL; return the progress with which a new one starts.

    A writer from before, or rows of a table that was overwritten since, are in regions whose
    retirement did not end. Raise if the rows may be wanted.
    """
    ensure_replaced(base)
    marks = []
    for region in retire_regions(base):
        manifest = RegionFiles.at(base.location, region).latest()
        if manifest is not None and manifest.current_generation > 1:
            mark = MergedGeneration(region_id=region, generation=manifest.current_generation - 1)
            marks.append(mark)
    return tuple(marks)


def ensure_replaced(base: Snapshot) -> None:
    """Raise if regions of a table without a MemWAL have rows that no overwrite has replaced."""
    left = next((r for r in list_regions(base.location) if _has_rows(base, r)), None)
    if left is not None and not was_replaced(base):
        raise InvalidRequestError(
            f"{base.location.uri} has rows in region {left} of an earlier MemWAL",
            action="Drop the earlier MemWAL with `discard` if the rows are not needed.",
        )


def _has_rows(base: Snapshot, region: uuid.UUID) -> bool:
    files = RegionFiles.at(base.location, region)
    manifest = files.latest()
    if manifest is None:
        return True
    return bool(manifest.generations) or files.last_position() > manifest.replay_after
