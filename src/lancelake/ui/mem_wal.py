"""Answers about the MemWAL of a table."""

from __future__ import annotations

from lancelake.memwal.status import RegionStatus, wal_status
from lancelake.table.describe.documents import Json
from lancelake.table.describe.summary import table_command
from lancelake.ui.calls import Call


def status(call: Call) -> Json:
    """Return the regions of the MemWAL, and what of them is not merged."""
    snapshot = call.snapshot
    found = wal_status(snapshot)
    is_waiting = any(each.unmerged or each.tail_rows for each in found.regions)
    return {
        "version": found.version,
        "regions": [_region(each) for each in found.regions],
        "command": table_command("wal merge --flush", snapshot) if is_waiting else None,
    }


def _region(found: RegionStatus) -> Json:
    return {
        "region": str(found.region),
        "writer_epoch": found.manifest.writer_epoch,
        "is_active": found.manifest.is_active,
        "merged_generation": found.merged_generation,
        "current_generation": found.manifest.current_generation,
        "unmerged_generations": len(found.unmerged),
        "flushed_rows": found.flushed_rows,
        "tail_entries": found.tail_entries,
        "tail_rows": found.tail_rows,
    }
