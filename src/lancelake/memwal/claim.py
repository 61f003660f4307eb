"""Claim of a region: a new epoch, and a sentinel that stops the writer before."""

from __future__ import annotations

from collections.abc import Callable

from lancelake.clock import Clock, SystemClock
from lancelake.errors import (
    AlreadyExistsError,
    ContentionError,
    InvalidRequestError,
    StorageUnavailableError,
    WriterFencedError,
)
from lancelake.format.memwal import wal_entry
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.memwal.elapsed import Elapsed
from lancelake.memwal.region_files import RegionFiles

_CLOCK: Clock = SystemClock()
_ATTEMPTS = 20
Change = Callable[[RegionManifest], RegionManifest]
_FIRST_EPOCH = 1


def claim(
    files: RegionFiles,
    new: RegionManifest,
    *,
    clock: Clock = _CLOCK,
    ensure_allowed: Callable[[], None] | None = None,
) -> RegionManifest:
    """Take a region over with the next epoch; `new` is its state if it does not exist yet.

    `ensure_allowed` raises if the state that was read just before must not be claimed.
    """
    for _ in range(_ATTEMPTS):
        began = Elapsed(clock)
        current = files.latest() or new
        if ensure_allowed is not None:
            ensure_allowed()
        if not current.is_active:
            raise InvalidRequestError(
                f"region {files.region} is sealed and accepts no more rows",
                region=str(files.region),
            )
        if current.spec_id != new.spec_id:
            msg = f"region {files.region} has region spec {current.spec_id}, not {new.spec_id}"
            raise InvalidRequestError(msg, region=str(files.region))
        claimed = current.claimed()
        try:
            files.create_manifest(claimed)
        except (AlreadyExistsError, StorageUnavailableError):
            # After a lost reply the claim may be ours, or another writer's with the same bytes:
            # only a further epoch is certain to be ours.
            continue
        if _is_newest(files, claimed, began):
            return claimed
    msg = f"region {files.region} could not be claimed in {_ATTEMPTS} attempts"
    raise ContentionError(msg, region=str(files.region))


def fence(files: RegionFiles, claimed: RegionManifest) -> int:
    """Write a sentinel after the last WAL entry; return the last position to replay.

    An earlier writer that has not noticed the claim cannot write after it.
    """
    position = max(files.last_position(), claimed.replay_after)
    if claimed.writer_epoch == _FIRST_EPOCH:
        return position
    sentinel = wal_entry.encode_sentinel(claimed.writer_epoch)
    while True:
        position += 1
        if settled_put(files, position, sentinel):
            return position
        if files.entry(position).writer_epoch > claimed.writer_epoch:
            raise fenced(files)


def settled_put(files: RegionFiles, position: int, data: bytes, *, attempts: int = 4) -> bool:
    """Write a WAL entry and return whether it has the position; False if another entry does.

    After a lost reply the content at the position decides.
    """
    for attempt in range(attempts):
        try:
            files.create_entry(position, data)
        except AlreadyExistsError:
            return files.entry_bytes(position) == data
        except StorageUnavailableError:
            if attempt + 1 == attempts:
                raise
        else:
            return True
    raise AssertionError


def fenced(files: RegionFiles) -> WriterFencedError:
    """Return the error of a writer whose region was claimed by another."""
    msg = f"another writer has claimed region {files.region}"
    action = "Open a new writer if this process is still to write to it."
    return WriterFencedError(msg, region=str(files.region), action=action)


def ensure_epoch(files: RegionFiles, epoch: int | None) -> RegionManifest:
    """Return the newest manifest; raise WriterFencedError unless it has the epoch of a writer."""
    current = files.latest()
    if current is None or epoch not in (None, current.writer_epoch):
        raise fenced(files)
    return current


def _is_newest(files: RegionFiles, made: RegionManifest, began: Elapsed) -> bool:
    """Whether a manifest took effect.

    After a long time its version may have been free only because later ones were collected.
    """
    if not began.is_long():
        return True
    newest = files.newest_listed()
    files.write_hint(newest)
    return newest == made.version


def update_manifest(
    files: RegionFiles,
    epoch: int | None,
    change: Change,
    *,
    is_done: Callable[[RegionManifest], bool],
    clock: Clock = _CLOCK,
) -> RegionManifest:
    """Write the next manifest of a region; `is_done` recognizes one that has the change.

    A writer gives its epoch. Other versions may come in between: readers of official releases write
    some too.
    """
    for _ in range(_ATTEMPTS):
        began = Elapsed(clock)
        current = ensure_epoch(files, epoch)
        if is_done(current):
            return current
        changed = change(current)
        try:
            files.create_manifest(changed)
        except (AlreadyExistsError, StorageUnavailableError):
            continue
        if _is_newest(files, changed, began):
            return changed
    msg = f"the manifest of region {files.region} could not be written in {_ATTEMPTS} attempts"
    raise ContentionError(msg, region=str(files.region))
