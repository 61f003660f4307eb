"""Files of a region: manifests and WAL entries in the table's store."""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass

from lancelake.errors import (
    CorruptTableError,
    LanceTableError,
    ObjectNotFoundError,
)
from lancelake.format.memwal import names, region_manifest, wal_entry
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.format.memwal.wal_entry import WalEntry
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionFiles:
    """Reads and writes the manifests and the WAL of one region."""

    store: ObjectStore
    region: uuid.UUID

    @staticmethod
    def at(location: Location, region: uuid.UUID) -> RegionFiles:
        """Return the files of a region of a table."""
        return RegionFiles(store=open_store(location), region=region)

    def latest(self) -> RegionManifest | None:
        """Read the newest manifest; None for a region without any."""
        found = self._hinted()
        if found is None:
            found = self.manifest(self.newest_listed())
        while found is not None:
            following = self.manifest(found.version + 1)
            if following is None:
                return found
            found = following
        return None

    def manifest(self, version: int) -> RegionManifest | None:
        """Read a manifest; None if it does not exist."""
        path = names.manifest(self.region, version)
        try:
            found = region_manifest.decode(self.store.get(path))
        except ObjectNotFoundError:
            return None
        if (found.region_id, found.version) != (self.region, version):
            msg = f"{path} is the manifest of version {found.version} of region {found.region_id}"
            raise CorruptTableError(msg, path=path)
        return found

    def create_manifest(self, manifest: RegionManifest) -> None:
        """Write a manifest, or raise AlreadyExistsError if its version is taken."""
        path = names.manifest(self.region, manifest.version)
        self.store.create(path, region_manifest.encode(manifest))
        self.write_hint(manifest.version)

    def write_hint(self, version: int) -> None:
        """Write the hint at the newest manifest, which only saves calls: it may fail."""
        hint = region_manifest.encode_hint(version)
        with suppress(LanceTableError):
            self.store.put(names.version_hint(self.region), hint, durable=False)

    def newest_listed(self) -> int:
        """Return the highest version in the folder of manifests; 0 for none."""
        listed = map(names.parse_manifest, self._names(names.manifest_dir(self.region)))
        return max((version for version in listed if version is not None), default=0)

    def positions(self) -> list[int]:
        """Return the positions in the WAL, in order."""
        listed = map(names.parse_wal_entry, self._names(names.wal_dir(self.region)))
        return sorted(position for position in listed if position is not None)

    def last_position(self) -> int:
        """Return the highest position in the WAL; 0 for an empty one."""
        return max(self.positions(), default=0)

    def create_entry(self, position: int, data: bytes) -> None:
        """Write a WAL entry, or raise AlreadyExistsError if its position is taken."""
        self.store.create(names.wal_entry(self.region, position), data)

    def entry_bytes(self, position: int) -> bytes:
        """Read a WAL entry as it is stored; raise ObjectNotFoundError if there is none."""
        return self.store.get(names.wal_entry(self.region, position))

    def entry(self, position: int) -> WalEntry:
        """Read a WAL entry; raise CorruptTableError if there is none."""
        path = names.wal_entry(self.region, position)
        try:
            return wal_entry.decode(self.entry_bytes(position), path=path)
        except ObjectNotFoundError as error:
            msg = f"the WAL of region {self.region} has no entry at position {position}"
            raise CorruptTableError(msg, path=path) from error

    def hint(self) -> int | None:
        """Read the hint at the newest manifest; None when it is missing or damaged."""
        try:
            return region_manifest.decode_hint(self.store.get(names.version_hint(self.region)))
        except ObjectNotFoundError:
            return None

    def _hinted(self) -> RegionManifest | None:
        hint = self.hint()
        return None if hint is None else self.manifest(hint)

    def _names(self, directory: str) -> list[str]:
        return self.store.list_names(directory)


def list_regions(location: Location, store: ObjectStore | None = None) -> tuple[uuid.UUID, ...]:
    """Return the regions of a table, which are the folders below `_mem_wal`."""
    listed = (store or open_store(location)).list_dirs(names.ROOT)
    found = map(names.parse_region_dir, listed)
    return tuple(sorted((region for region in found if region is not None), key=str))
