"""Commit handler for stores with conditional put (put-if-absent)."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.commit.handler import Outcome, PublishedVersion, Taken, Unknown
from lancelake.commit.lookup import every_manifest, latest_manifest, manifest_of
from lancelake.errors import AlreadyExistsError, StorageError
from lancelake.format import layout
from lancelake.format.names import ManifestName
from lancelake.storage.store import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalPut:
    """Publishes with a conditional put: the store decides which writer is first."""

    store: ObjectStore

    def create(self, version: int, name: str, data: bytes) -> Outcome:  # noqa: ARG002  # the name says it
        """Publish a manifest if its version is free."""
        try:
            self.store.create(layout.manifest(name), data)
        except AlreadyExistsError:
            return Taken()
        except StorageError as error:
            # A disk can fail after the rename, and a reply can be lost.
            return Unknown(error)
        return PublishedVersion()

    def latest(self) -> ManifestName | None:
        """Find the newest version of the main line."""
        return latest_manifest(self.store)

    def find(self, version: int) -> ManifestName | None:
        """Find the manifest of a version."""
        return manifest_of(self.store, version)

    def every(self) -> list[ManifestName]:
        """Find all versions of the main line, oldest first."""
        return every_manifest(self.store)
