"""A region: its files, its claim by a writer, and its end.

The process that ends a MemWAL also replaces its writers, but may stop before that; official
releases never do it. Rows that were acknowledged from then on would be seen by no reader.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from lancelake import errors
from lancelake.clock import Clock, SystemClock
from lancelake.commit.snapshot import (
    Latest,
    Snapshot,
    latest_version,
    list_versions,
    open_line,
    open_snapshot,
)
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.memwal import details, region_manifest, wal_files
from lancelake.format.memwal.details import MemWalDetails
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.format.memwal.wal_files import WalEntry
from lancelake.format.operations import Overwrite, Restore
from lancelake.memwal.shape import RowShape
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectStore, create_once
from lancelake.threads import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionFiles:
    """Reads and writes the manifests and the WAL of one region."""

    store: ObjectStore
    region: uuid.UUID

    @staticmethod
    def at(location: Location, region: uuid.UUID) -> RegionFiles:
        """Return the files of a region of a table."""
        return RegionFiles(store=location.store, region=region)

    def latest(self) -> RegionManifest | None:
        """Read the newest manifest; None for a region without any."""
        newest = self._hinted()
        if newest is None:
            newest = self.manifest(self.newest_listed())
        while newest is not None:
            following = self.manifest(newest.version + 1)
            if following is None:
                return newest
            newest = following
        return None

    def manifest(self, version: int) -> RegionManifest | None:
        """Read a manifest; None if it does not exist."""
        path = wal_files.manifest(self.region, version)
        try:
            manifest = region_manifest.decode(self.store.get(path))
        except errors.ObjectNotFoundError:
            return None
        number, region = manifest.version, manifest.region_id
        if (region, number) != (self.region, version):
            msg = f"{path} is the manifest of version {number} of region {region}"
            raise errors.CorruptTableError(msg, path=path)
        return manifest

    def create_manifest(self, manifest: RegionManifest) -> None:
        """Write a manifest, or raise AlreadyExistsError if its version is taken."""
        path = wal_files.manifest(self.region, manifest.version)
        self.store.create(path, region_manifest.encode(manifest))
        self.write_hint(manifest.version)

    def write_hint(self, version: int) -> None:
        """Write the hint at the newest manifest, which only saves calls: it may fail."""
        hint = region_manifest.encode_hint(version)
        with suppress(errors.LanceTableError):
            self.store.put(wal_files.version_hint(self.region), hint, durable=False)

    def newest_listed(self) -> int:
        """Return the highest version in the folder of manifests; 0 for none."""
        listed = map(wal_files.parse_manifest, self._names(wal_files.manifest_dir(self.region)))
        return max((version for version in listed if version is not None), default=0)

    def positions(self) -> list[int]:
        """Return the positions in the WAL, in order."""
        listed = map(wal_files.parse_wal_entry, self._names(wal_files.wal_dir(self.region)))
        return sorted(position for position in listed if position is not None)

    def last_position(self) -> int:
        """Return the highest position in the WAL; 0 for an empty one."""
        return max(self.positions(), default=0)

    def create_entry(self, position: int, data: bytes) -> bool:
        """Write a WAL entry and return whether it has the position; False if another one does."""
        return create_once(self.store, wal_files.wal_entry(self.region, position), data)

    def entry_bytes(self, position: int) -> bytes:
        """Read a WAL entry as it is stored; raise ObjectNotFoundError if there is none."""
        return self.store.get(wal_files.wal_entry(self.region, position))

    def entry(self, position: int) -> WalEntry:
        """Read a WAL entry; raise CorruptTableError if there is none."""
        path = wal_files.wal_entry(self.region, position)
        try:
            return wal_files.decode(self.entry_bytes(position), path=path)
        except errors.ObjectNotFoundError as error:
            msg = f"the WAL of region {self.region} has no entry at position {position}"
            raise errors.CorruptTableError(msg, path=path) from error

    def hint(self) -> int | None:
        """Read the hint at the newest manifest; None when it is missing or damaged."""
        try:
            return region_manifest.decode_hint(self.store.get(wal_files.version_hint(self.region)))
        except errors.ObjectNotFoundError:
            return None

    def _hinted(self) -> RegionManifest | None:
        hint = self.hint()
        return None if hint is None else self.manifest(hint)

    def _names(self, directory: str) -> list[str]:
        return self.store.list_names(directory)


def region_files(
    location: Location,
    regions: Iterable[uuid.UUID] | None = None,
    store: ObjectStore | None = None,
) -> Iterator[RegionFiles]:
    """Yield the files of regions, by default of all, in the table's own store unless given one."""
    for region in list_regions(location, store) if regions is None else regions:
        yield RegionFiles(store=store or location.store, region=region)


def list_regions(location: Location, store: ObjectStore | None = None) -> tuple[uuid.UUID, ...]:
    """Return the regions of a table, which are the folders below `_mem_wal`."""
    listed = (store or location.store).list_dirs(wal_files.ROOT)
    regions = map(wal_files.parse_region_dir, listed)
    return tuple(sorted((region for region in regions if region is not None), key=str))


LONGEST_S = 3600.0
"""After this time a writer checks again that it has not been replaced.

Garbage collection keeps what stops replaced writers for much longer.
"""
_NS_PER_S = 1_000_000_000


class Elapsed:
    """Time since this was made, by two clocks: one of them also runs while a machine is suspended.

    A wall clock that was set back proves nothing, so that the time counts as long.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall_ns = clock.now_ns()
        self._monotonic_s = clock.monotonic_s()

    def is_long(self, longest_s: float = LONGEST_S) -> bool:
        """Whether a check from then must be repeated."""
        wall_s = (self._clock.now_ns() - self._wall_ns) / _NS_PER_S
        steady_s = self._clock.monotonic_s() - self._monotonic_s
        return wall_s < 0 or max(wall_s, steady_s) > longest_s


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
            raise errors.InvalidRequestError(
                f"region {files.region} is sealed and accepts no more rows",
                region=str(files.region),
            )
        if current.spec_id != new.spec_id:
            msg = f"region {files.region} has region spec {current.spec_id}, not {new.spec_id}"
            raise errors.InvalidRequestError(msg, region=str(files.region))
        claimed = current.claimed()
        try:
            files.create_manifest(claimed)
        except (errors.AlreadyExistsError, errors.StorageUnavailableError):
            # After a lost reply the claim may be ours, or another writer's with the same bytes:
            # only a further epoch is certain to be ours.
            continue
        if _is_newest(files, claimed, began):
            return claimed
    msg = f"region {files.region} could not be claimed in {_ATTEMPTS} attempts"
    raise errors.ContentionError(msg, region=str(files.region))


def fence(files: RegionFiles, claimed: RegionManifest) -> int:
    """Write a sentinel after the last WAL entry; return the last position to replay.

    An earlier writer that has not noticed the claim cannot write after it.
    """
    position = max(files.last_position(), claimed.replay_after)
    if claimed.writer_epoch == _FIRST_EPOCH:
        return position
    sentinel = wal_files.encode_sentinel(claimed.writer_epoch)
    while True:
        position += 1
        if files.create_entry(position, sentinel):
            return position
        if files.entry(position).writer_epoch > claimed.writer_epoch:
            raise fenced(files)


def fenced(files: RegionFiles) -> errors.WriterFencedError:
    """Return the error of a writer whose region was claimed by another."""
    msg = f"another writer has claimed region {files.region}"
    action = "Open a new writer if this process is still to write to it."
    return errors.WriterFencedError(msg, region=str(files.region), action=action)


def ensure_epoch(files: RegionFiles, epoch: int | None) -> RegionManifest:
    """Return the newest manifest; raise WriterFencedError unless it has the epoch of a writer."""
    current = files.latest()
    if current is None or epoch not in (None, current.writer_epoch):
        raise fenced(files)
    return current


def _is_newest(files: RegionFiles, written: RegionManifest, began: Elapsed) -> bool:
    """Whether a manifest took effect.

    After a long time its version may have been free only because later ones were collected.
    """
    if not began.is_long():
        return True
    newest = files.newest_listed()
    files.write_hint(newest)
    return newest == written.version


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
        except (errors.AlreadyExistsError, errors.StorageUnavailableError):
            continue
        if _is_newest(files, changed, began):
            return changed
    msg = f"the manifest of region {files.region} could not be written in {_ATTEMPTS} attempts"
    raise errors.ContentionError(msg, region=str(files.region))


def has_mem_wal(version: Snapshot) -> bool:
    """Whether a version has a MemWAL."""
    return any(index.name == MEM_WAL for index in version.indices)


def details_of(base: Snapshot) -> MemWalDetails:
    """Return the MemWAL details of a version; raise for a table without a MemWAL."""
    entry = next((i for i in base.indices if i.name == MEM_WAL), None)
    if entry is None:
        raise errors.InvalidRequestError(
            "the table has no MemWAL", table=base.location.uri, version=base.version
        )
    return details.of_entry(entry)


def ensure_ended(base: Snapshot) -> None:
    """Raise AlreadyExistsError if the newest version of the table has a MemWAL."""
    newest = _newest(base)
    if has_mem_wal(newest):
        raise errors.AlreadyExistsError("the table already has a MemWAL", version=newest.version)


def ensure_not_ended(base: Snapshot) -> Snapshot:
    """Return the newest version of the table; raise WriterFencedError if it has no MemWAL."""
    newest = _newest(base)
    if not has_mem_wal(newest):
        raise errors.WriterFencedError(
            f"version {newest.version} of the table has no MemWAL",
            action="Rows that were not merged have been discarded.",
        )
    return newest


def ensure_writable(base: Snapshot, shape: RowShape) -> None:
    """Raise InvalidRequestError if the newest version of the table does not take rows of a shape.

    An overwrite numbers columns from the start: values would get into other columns.
    """
    newest = _newest(base)
    if newest.version == base.version:
        return
    if not has_mem_wal(newest):
        raise errors.InvalidRequestError(f"version {newest.version} of the table has no MemWAL")
    now = {field.id: (field.name, field.logical_type) for field in newest.manifest.schema.fields}
    changed = [
        f"column {field.name}"
        for field in shape.table.fields
        if now.get(field.id, (field.name, field.logical_type)) != (field.name, field.logical_type)
    ]
    if tuple(field.name for field in newest.manifest.schema.primary_key()) != shape.keys:
        changed.append("the primary key")
    if changed:
        raise errors.InvalidRequestError(
            f"{changed[0]} has changed by version {newest.version}",
            action="Open a new writer on the newest version.",
        )


def was_replaced(base: Snapshot) -> bool:
    """Whether an overwrite or a restore has ended the last MemWAL before a version.

    Rows in its regions then belong to a table that no longer exists. False when another change has
    ended it, and when the versions that would show it were cleaned up.
    """
    names = [name for name in list_versions(base.location) if name.version <= base.version]
    was_restored = False
    for name in reversed(names):
        version = Snapshot.load(base.location, name)
        if has_mem_wal(version):
            return was_restored
        operation = None if version.transaction is None else version.transaction.operation
        if isinstance(operation, Overwrite):
            return True
        was_restored = isinstance(operation, Restore)
    return False


def _newest(base: Snapshot) -> Snapshot:
    return open_snapshot(base.location, Latest(), main=base.main_location)


_WATCH_ATTEMPTS = 4
# The next version alone may have another kind of name, or be cleaned up behind a still newer one.
_SURE_FOR_S = 1.0
_LOCAL = ("file", "memory")


class EndWatch:
    """Looks whether the newest version of a table still has the MemWAL.

    Within a second of a full look it asks only whether the next version exists. A MemWAL that ends
    during a call may end before or after it, so that the look may be at any time of the call: on a
    store over the network it runs beside the call, and adds no latency.
    """

    def __init__(self, base: Snapshot) -> None:
        self._base = base
        self._clock = base.location.session.clock
        self._line = open_line(base.location)
        self._known = base.name
        self._full: Elapsed | None = None
        self._beside: Pool | None = None

    @contextmanager
    def during(self) -> Iterator[None]:
        """Raise WriterFencedError if the MemWAL had ended before the block began."""
        if self._base.location.scheme in _LOCAL:
            self.look()
            yield
            return
        if self._beside is None:
            self._beside = Pool(1)
        looking = self._beside.submit(self.look)
        try:
            yield
        finally:
            looking.wait()
        looking.result()

    def look(self) -> None:
        """Raise WriterFencedError if the newest version has no MemWAL."""
        for attempt in range(_WATCH_ATTEMPTS):
            try:
                self._look()
            except errors.StorageUnavailableError:
                if attempt + 1 == _WATCH_ATTEMPTS:
                    raise
            else:
                return

    def close(self) -> None:
        """Stop."""
        if self._beside is not None:
            self._beside.close()

    def _look(self) -> None:
        if self._full is not None and not self._full.is_long(_SURE_FOR_S):
            if self._line.has_next(self._known):
                self._known = ensure_not_ended(self._base).name
            return
        began = Elapsed(self._clock)
        if latest_version(self._base.location).version > self._known.version:
            self._known = ensure_not_ended(self._base).name
        self._full = began
