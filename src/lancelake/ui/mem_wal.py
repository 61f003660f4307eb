"""Answers about the MemWAL of a table."""

from __future__ import annotations

from lancelake.memwal.status import wal_status
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
        "regions": [each.facts() for each in found.regions],
        "command": table_command("wal merge --flush", snapshot) if is_waiting else None,
    }
