"""Removal of a MemWAL from a table."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import InvalidRequestError
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.operations import CreateIndex
from lancelake.memwal.carry import ensure_replaced
from lancelake.memwal.retire import retire_regions
from lancelake.memwal.status import wal_status
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish


@names_table
def drop_mem_wal(
    base: Snapshot, *, discard: bool = False, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Remove the MemWAL from a table, and retire its regions.

    Rows that are not merged are refused unless they are to be discarded, and so are those of
    regions that another program has left on a table without a MemWAL.
    """
    gone = tuple(index for index in base.indices if index.name == MEM_WAL)
    if not gone:
        if not discard:
            ensure_replaced(base)
        retire_regions(base)
        return base
    status = wal_status(base)
    left = [r for r in status.regions if r.unmerged or r.tail_entries]
    if left and not discard:
        raise InvalidRequestError(
            f"{len(left)} regions of the MemWAL have rows that are not merged",
            action="Merge them first, or discard them.",
        )
    operation = CreateIndex(new_indices=(), removed_indices=gone)
    return publish(base, new_transaction(operation, base.version, choices), choices)
