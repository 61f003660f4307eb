"""Garbage of a region: which of its files nothing can need any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lancelake.errors import ObjectNotFoundError
from lancelake.format.memwal import names, wal_entry
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.format.memwal.wal_entry import WalEntry
from lancelake.memwal.region_files import RegionFiles
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
    folder = names.region_dir(manifest.region_id)
    listed = {generation.path for generation in manifest.generations}
    by_generation: dict[str, list[ObjectInfo]] = defaultdict(list)
    for info in store.list(folder):
        name = info.path.removeprefix(f"{folder}/").partition("/")[0]
        if name not in listed and names.parse_generation_dir(name) is not None:
            by_generation[name].append(info)
    for name, found in by_generation.items():
        number = names.parse_generation_dir(name) or 0
        # Only the current generation can still be committed by a flush that is under way.
        is_over = number < manifest.current_generation
        limit = ages.before_ns if is_over else ages.abandoned_ns
        if max(info.modified_ns for info in found) < limit:
            yield from (GarbageFile(info.path, info.size_bytes, True) for info in found)


def _entries(files: RegionFiles, manifest: RegionManifest, ages: Ages) -> Iterator[GarbageFile]:
    """Yield flushed WAL entries.

    An entry with rows may go: a writer that was replaced before it is stopped by the sentinel at
    the position that it writes next. The last entry stays, since the next position is found from
    it, and so does the newest one with batches of streaming queries.
    """
    found = _listed(files, names.wal_dir(files.region), names.parse_wal_entry)
    has_units = False
    for position in sorted(found, reverse=True):
        info, entry = found[position], None
        if not has_units or info.size_bytes <= _LARGEST_SENTINEL:
            entry = _entry(files, position)
            if entry is None:
                continue
            if entry.units and not has_units:
                has_units = True
                continue
        is_flushed = position <= manifest.replay_after and position != max(found)
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
    found = _listed(files, names.manifest_dir(files.region), names.parse_manifest)
    for version in sorted(found):
        info = found[version]
        if version >= least or info.modified_ns >= ages.abandoned_ns:
            return
        yield GarbageFile(info.path, info.size_bytes, False)


def _listed(files: RegionFiles, folder: str, parse: names.ParseName) -> dict[int, ObjectInfo]:
    numbered = ((parse(i.path.removeprefix(f"{folder}/")), i) for i in files.store.list(folder))
    return {number: info for number, info in numbered if number is not None}


def _entry(files: RegionFiles, position: int) -> WalEntry | None:
    """Read an entry; None if another collector has removed it."""
    path = names.wal_entry(files.region, position)
    try:
        return wal_entry.decode(files.entry_bytes(position), path=path)
    except ObjectNotFoundError:
        return None
