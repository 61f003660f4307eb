"""Retirement of regions whose rows belong to what the table was before."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import AlreadyExistsError, ContentionError, WriterFencedError
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.memwal.region_manifest import FIRST_GENERATION, RegionManifest
from lancelake.format.operations import CreateIndex, Overwrite, Restore
from lancelake.memwal.claim import claim, fence, update_manifest
from lancelake.memwal.ended import ensure_ended, has_mem_wal
from lancelake.memwal.region_files import RegionFiles, list_regions
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore
from lancelake.table.commit_hooks import Committed

_ATTEMPTS = 5


def retire_regions(base: Snapshot, store: ObjectStore | None = None) -> tuple[uuid.UUID, ...]:
    """Replace the writers of all regions and discard rows that are not merged.

    The numbers of epochs, generations and WAL entries go on, so that neither a replaced writer nor
    a late merge brings anything back. The files are left to garbage collection. If the newest
    version has a MemWAL, AlreadyExistsError is raised and its rows stay.
    """
    found = list_regions(base.location, store)
    for region in found:
        files = RegionFiles(store=store or open_store(base.location), region=region)
        _retire(files, lambda: ensure_ended(base))
    return found


def _retire(files: RegionFiles, ensure_unused: Callable[[], None]) -> None:
    """Empty a region.

    A writer of a new MemWAL claims the region after the version that begins the MemWAL. Each claim
    here is of a state that was read before a look at the newest version, and so cannot replace it.
    """
    for _ in range(_ATTEMPTS):
        try:
            _empty(files, ensure_unused)
        except WriterFencedError:
            # Another process retires the region, or a writer that does not know of the end.
            continue
        return
    msg = f"region {files.region} could not be retired in {_ATTEMPTS} attempts"
    raise ContentionError(msg, region=str(files.region))


def _empty(files: RegionFiles, ensure_unused: Callable[[], None]) -> None:
    current = files.latest() or RegionManifest(region_id=files.region)
    ensure_unused()
    if not current.is_active:
        current = update_manifest(
            files,
            current.writer_epoch,
            RegionManifest.unsealed,
            is_done=lambda found: found.is_active,
        )
    claimed = claim(files, current, ensure_allowed=ensure_unused)
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
    if may_have_removed and not has_mem_wal(version):
        # A MemWAL that was added since has retired the regions itself.
        with suppress(AlreadyExistsError):
            retire_regions(version)
