"""Retirement of regions whose rows belong to what the table was before."""

from __future__ import annotations

import uuid

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import InvalidRequestError
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.memwal.region_manifest import FIRST_GENERATION, RegionManifest
from lancelake.format.operations import CreateIndex, Overwrite, Restore
from lancelake.memwal.carry import carried
from lancelake.memwal.claim import claim, fence, update_manifest
from lancelake.memwal.region_files import RegionFiles, list_regions
from lancelake.memwal.status import wal_status
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore
from lancelake.table.commit_hooks import Committed
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish


def retire_regions(location: Location, store: ObjectStore | None = None) -> tuple[uuid.UUID, ...]:
    """Replace the writers of all regions and discard rows that are not merged.

    The numbers of epochs, generations and WAL entries go on, so that neither a replaced writer nor
    a late merge brings anything back. The files are left to garbage collection.
    """
    found = list_regions(location, store)
    for region in found:
        _retire(RegionFiles(store=store or open_store(location), region=region))
    return found


def _retire(files: RegionFiles) -> None:
    current = files.latest() or RegionManifest(region_id=files.region)
    if not current.is_active:
        current = update_manifest(
            files, None, RegionManifest.unsealed, is_done=lambda found: found.is_active
        )
    claimed = claim(files, current)
    last = fence(files, claimed)
    tags = [
        entry.generation + 1
        for entry in map(files.entry, range(claimed.replay_after + 1, last + 1))
        if entry.generation is not None
    ]
    following = max(tags, default=FIRST_GENERATION)
    update_manifest(
        files,
        claimed.writer_epoch,
        lambda found: found.emptied(covers=last, current_generation=following),
        is_done=lambda found: not found.generations and found.replay_after >= last,
    )


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
            carried(base.location)
        retire_regions(base.location)
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


def retire_if_replaced(made: Committed) -> None:
    """Retire the regions of a table whose MemWAL a commit has removed."""
    version = made.snapshot
    match made.operation:
        case Overwrite() | Restore():
            may_have_removed = True
        case CreateIndex(removed_indices=removed):
            may_have_removed = any(index.name == MEM_WAL for index in removed)
        case _:
            may_have_removed = False
    if may_have_removed and all(index.name != MEM_WAL for index in version.indices):
        retire_regions(version.location)
