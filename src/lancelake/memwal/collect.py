"""Garbage collection of a MemWAL: merged generations, and WAL entries that are flushed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.commit.versions import list_versions
from lancelake.data.codec.readers import forget_readers
from lancelake.errors import AlreadyExistsError
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.memwal.claim import update_manifest
from lancelake.memwal.ended import has_mem_wal, was_replaced
from lancelake.memwal.garbage import Ages, GarbageFile, find_garbage
from lancelake.memwal.initialize import details_of
from lancelake.memwal.region_files import RegionFiles, list_regions
from lancelake.memwal.retire import retire_regions
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.publish import SYSTEM, Surroundings

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


@names_table
def collect_garbage(
    base: Snapshot,
    *,
    older_than: timedelta | None = None,
    abandoned_after: timedelta = _WEEK,
    dry_run: bool = False,
    surroundings: Surroundings = SYSTEM,
    store: ObjectStore | None = None,
) -> Collected:
    """Remove generations that were merged before a time, and WAL entries that were flushed.

    Reads of a version that was replaced longer than `older_than` ago, by default a day, fail at
    other freshness levels than that of the base. Files that a stopped process left, old manifests
    and entries that stop replaced writers are kept for `abandoned_after`. Regions of a MemWAL that
    an overwrite or a restore has ended are retired if they are not yet. Writers and merges may run
    meanwhile. The manifests and the WAL are in the table's own store unless another is given.
    """
    now = surroundings.clock.now_ns()
    age = DAY if older_than is None else older_than
    ages = Ages(before_ns=now - _ns(age), abandoned_ns=now - _ns(abandoned_after))
    newest = open_snapshot(base.location, Latest(), main=base.main_location)
    merged = _merged_before(newest, ages.before_ns)
    if not dry_run and not has_mem_wal(newest) and was_replaced(newest):
        with suppress(AlreadyExistsError):  # a new MemWAL has retired them
            retire_regions(newest, store)
    found = []
    for region in list_regions(base.location, store):
        files = RegionFiles(store=store or open_store(base.location), region=region)
        manifest = files.latest()
        if manifest is not None:
            reached = merged.get(region, 0)
            made = _region(base, files, manifest, reached, ages, dry_run=dry_run)
            found.append(made)
    return Collected(regions=tuple(found), is_dry_run=dry_run)


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
    kept = manifest.without(trimmed) if trimmed else manifest
    if trimmed and not dry_run:
        # Others may write manifests meanwhile: exactly these generations are removed.
        kept = update_manifest(
            files,
            None,
            lambda found: found.without(trimmed),
            is_done=lambda found: not {g.generation for g in found.generations} & {*trimmed},
        )
    garbage = find_garbage(open_store(base.location), files, kept, ages)
    if not dry_run:
        _remove(base, files, garbage)
    return CollectedRegion(region=files.region, trimmed=trimmed, files=garbage)


def _remove(base: Snapshot, files: RegionFiles, garbage: Iterable[GarbageFile]) -> None:
    in_log = [file.path for file in garbage if not file.is_of_generation]
    in_generations = [file.path for file in garbage if file.is_of_generation]
    files.store.delete_many(in_log)
    open_store(base.location).delete_many(in_generations)
    forget_readers(frozenset(base.location.child(path).uri for path in in_generations))


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
