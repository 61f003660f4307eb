"""Removal of merged generations and old entries."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from lancelake.commit.snapshot import Latest, Snapshot, list_versions, open_snapshot
from lancelake.data.codec.readers import forget_readers
from lancelake.errors import AlreadyExistsError, ObjectNotFoundError
from lancelake.format.memwal import wal_files
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.format.memwal.wal_files import WalEntry
from lancelake.memwal.region import (
    RegionFiles,
    details_of,
    has_mem_wal,
    region_files,
    update_manifest,
    was_replaced,
)
from lancelake.memwal.setup import retire_regions
from lancelake.storage.store import ObjectInfo, ObjectStore

_KEPT_MANIFESTS = 16
_KEPT_EPOCHS = 2
_LARGEST_SENTINEL = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages:
    """Times before which files may go."""

    before_ns: int
    """For what is flushed or merged."""
    abandoned_ns: int
    """For what only its age shows to be abandoned."""


class GarbageFile(NamedTuple):
    """A file that can be removed."""

    path: str
    size_bytes: int
    is_of_generation: bool


def find_garbage(
    store: ObjectStore, files: RegionFiles, manifest: RegionManifest, ages: Ages
) -> tuple[GarbageFile, ...]:
    """Return the files of a region that can be removed; `store` is that of its generations."""
    return (
        *_generations(store, manifest, ages),
        *_entries(files, manifest, ages),
        *_manifests(files, manifest, ages),
    )


def _generations(store: ObjectStore, manifest: RegionManifest, ages: Ages) -> Iterator[GarbageFile]:
    """Yield the files of generations that the manifest does not list."""
    folder = wal_files.region_dir(manifest.region_id)
    listed = {generation.path for generation in manifest.generations}
    by_generation: dict[str, list[ObjectInfo]] = defaultdict(list)
    for info in store.list(folder):
        name = info.path.removeprefix(f"{folder}/").partition("/")[0]
        if name not in listed and wal_files.parse_generation_dir(name) is not None:
            by_generation[name].append(info)
    for name, infos in by_generation.items():
        number = wal_files.parse_generation_dir(name) or 0
        # Only the current generation can still be committed by a flush that is under way.
        is_over = number < manifest.current_generation
        limit = ages.before_ns if is_over else ages.abandoned_ns
        if max(info.modified_ns for info in infos) < limit:
            yield from (GarbageFile(info.path, info.size_bytes, True) for info in infos)


def _entries(files: RegionFiles, manifest: RegionManifest, ages: Ages) -> Iterator[GarbageFile]:
    """Yield flushed WAL entries.

    An entry with rows may go: a writer that was replaced before it is stopped by the sentinel at
    the position that it writes next. The last entry stays, since the next position is found from
    it, and so does the newest one with batches of streaming queries.
    """
    entries = _listed(files, wal_files.wal_dir(files.region), wal_files.parse_wal_entry)
    has_units = False
    for position in sorted(entries, reverse=True):
        info, entry = entries[position], None
        if not has_units or info.size_bytes <= _LARGEST_SENTINEL:
            entry = _entry(files, position)
            if entry is None:
                continue
            if entry.units and not has_units:
                has_units = True
                continue
        is_flushed = position <= manifest.replay_after and position != max(entries)
        if is_flushed and info.modified_ns < _limit(entry, manifest, ages):
            yield GarbageFile(info.path, info.size_bytes, False)


def _limit(entry: WalEntry | None, manifest: RegionManifest, ages: Ages) -> int:
    if entry is None or not entry.is_sentinel:
        return ages.before_ns
    is_recent = entry.writer_epoch > manifest.writer_epoch - _KEPT_EPOCHS
    return 0 if is_recent else ages.abandoned_ns  # at time 0 nothing was written before


def _manifests(files: RegionFiles, manifest: RegionManifest, ages: Ages) -> Iterator[GarbageFile]:
    """Yield old manifests, as long as the hint leads to one that stays.

    Official releases begin at the first version when the hint leads nowhere.
    """
    least = manifest.version - _KEPT_MANIFESTS
    hint = files.hint()
    if hint is None or hint < least:
        return
    manifests = _listed(files, wal_files.manifest_dir(files.region), wal_files.parse_manifest)
    for version in sorted(manifests):
        info = manifests[version]
        if version >= least or info.modified_ns >= ages.abandoned_ns:
            return
        yield GarbageFile(info.path, info.size_bytes, False)


def _listed(files: RegionFiles, folder: str, parse: wal_files.ParseName) -> dict[int, ObjectInfo]:
    numbered = ((parse(i.path.removeprefix(f"{folder}/")), i) for i in files.store.list(folder))
    return {number: info for number, info in numbered if number is not None}


def _entry(files: RegionFiles, position: int) -> WalEntry | None:
    """Read an entry; None if another collector has removed it."""
    path = wal_files.wal_entry(files.region, position)
    try:
        return wal_files.decode(files.entry_bytes(position), path=path)
    except ObjectNotFoundError:
        return None


DAY = timedelta(days=1)
_WEEK = timedelta(days=7)
_NS_PER_US = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedRegion:
    """What was removed of a region, or would be in a dry run."""

    region: uuid.UUID
    trimmed: tuple[int, ...]
    """Merged generations that the manifest no longer lists."""
    files: tuple[GarbageFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """Result of a garbage collection."""

    regions: tuple[CollectedRegion, ...]
    is_dry_run: bool

    @property
    def files(self) -> tuple[GarbageFile, ...]:
        """Files of all regions."""
        return tuple(file for region in self.regions for file in region.files)

    @property
    def size_bytes(self) -> int:
        """Size of these files."""
        return sum(file.size_bytes for file in self.files)


def collect_garbage(
    base: Snapshot,
    *,
    older_than: timedelta | None = None,
    abandoned_after: timedelta = _WEEK,
    dry_run: bool = False,
    store: ObjectStore | None = None,
) -> Collected:
    """Remove generations that were merged before a time, and WAL entries that were flushed.

    Reads of a version that was replaced longer than `older_than` ago, by default a day, fail at
    other freshness levels than that of the base. Files that a stopped process left, old manifests
    and entries that stop replaced writers are kept for `abandoned_after`. Regions of a MemWAL that
    an overwrite or a restore has ended are retired if they are not yet. Writers and merges may run
    meanwhile. The manifests and the WAL are in the table's own store unless another is given.
    """
    now = base.location.session.clock.now_ns()
    age = DAY if older_than is None else older_than
    ages = Ages(before_ns=now - _ns(age), abandoned_ns=now - _ns(abandoned_after))
    newest = open_snapshot(base.location, Latest(), main=base.main_location)
    merged = _merged_before(newest, ages.before_ns)
    if not dry_run and not has_mem_wal(newest) and was_replaced(newest):
        with suppress(AlreadyExistsError):  # a new MemWAL has retired them
            retire_regions(newest, store)
    collected = []
    for files in region_files(base.location, store=store):
        manifest = files.latest()
        if manifest is not None:
            reached = merged.get(files.region, 0)
            collected.append(_region(base, files, manifest, reached, ages, dry_run=dry_run))
    return Collected(regions=tuple(collected), is_dry_run=dry_run)


def _region(
    base: Snapshot,
    files: RegionFiles,
    manifest: RegionManifest,
    merged: int,
    ages: Ages,
    *,
    dry_run: bool,
) -> CollectedRegion:
    trimmed = tuple(g.generation for g in manifest.generations if g.generation <= merged)
    rest = manifest.without(trimmed) if trimmed else manifest
    if trimmed and not dry_run:
        # Others may write manifests meanwhile: exactly these generations are removed.
        rest = update_manifest(
            files,
            None,
            lambda current: current.without(trimmed),
            is_done=lambda current: not {g.generation for g in current.generations} & {*trimmed},
        )
    garbage = find_garbage(base.location.store, files, rest, ages)
    if not dry_run:
        _remove(base, files, garbage)
    return CollectedRegion(region=files.region, trimmed=trimmed, files=garbage)


def _remove(base: Snapshot, files: RegionFiles, garbage: Iterable[GarbageFile]) -> None:
    in_log = [file.path for file in garbage if not file.is_of_generation]
    in_generations = [file.path for file in garbage if file.is_of_generation]
    files.store.delete_many(in_log)
    base.location.store.delete_many(in_generations)
    forget_readers(
        base.location, frozenset(base.location.child(path).uri for path in in_generations)
    )


def _merged_before(newest: Snapshot, before_ns: int) -> Mapping[uuid.UUID, int]:
    """Return the progress of the version that was the newest one at a time, as far as it holds.

    Without such a version, that of the oldest one: no older version can be read.
    """
    now = _progress(newest)
    if _time(newest) < before_ns or not now:
        return now
    versions = list_versions(newest.location)
    low, high = 0, len(versions) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if _time(Snapshot.load(newest.location, versions[middle])) < before_ns:
            low = middle
        else:
            high = middle - 1
    then = _progress(Snapshot.load(newest.location, versions[low]))
    return {region: min(then.get(region, 0), reached) for region, reached in now.items()}


def _progress(version: Snapshot) -> dict[uuid.UUID, int]:
    return details_of(version).progress() if has_mem_wal(version) else {}


def _time(version: Snapshot) -> int:
    return version.manifest.timestamp_ns or 0


def _ns(time: timedelta) -> int:
    return time // timedelta(microseconds=1) * _NS_PER_US
