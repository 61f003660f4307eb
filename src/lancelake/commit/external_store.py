"""Commit handler with an external manifest store, a service that decides which writer is first.

A version is published in four steps: the manifest is staged under a temporary name; the service
records it for its version, which is the commit; it is copied to its final name; the service
records that name. Any client may do the last two steps.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from lancelake.clock import Ids
from lancelake.commit.conditional_put import ConditionalPut
from lancelake.commit.handler import Outcome, PublishedVersion, Taken, Unknown
from lancelake.commit.lookup import every_manifest, latest_manifest, manifest_of, taken_apart
from lancelake.errors import (
    CorruptTableError,
    LanceTableError,
    ObjectNotFoundError,
    StorageError,
)
from lancelake.format import layout
from lancelake.format.ids import is_detached
from lancelake.format.names import ManifestName
from lancelake.storage.confined import confined_path
from lancelake.storage.store import ObjectStore

_SUFFIX = ".manifest"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedEntry:
    """Entry of a version; `path` is relative to the line's root."""

    version: int
    path: str
    size_bytes: int | None = None
    e_tag: str | None = None

    @property
    def is_final(self) -> bool:
        """Whether the manifest has its final name."""
        return self.path.endswith(_SUFFIX)


class ExternalManifestStore(Protocol):
    """A service with one entry per version of a line and read-after-write consistency.

    It raises the errors of a store.
    """

    def put_if_not_exists(self, entry: PublishedEntry) -> bool:
        """Record a version; False if it has an entry."""
        ...

    def put_final(self, entry: PublishedEntry) -> None:
        """Replace the entry of a version that has one."""
        ...

    def get(self, version: int) -> PublishedEntry | None:
        """Return the entry of a version."""
        ...

    def get_latest(self) -> PublishedEntry | None:
        """Return the entry of the highest version of the main line."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalHandler:
    """Publishes through an external manifest store."""

    store: ObjectStore
    external: ExternalManifestStore
    ids: Ids

    def create(self, version: int, name: str, data: bytes) -> Outcome:
        """Publish a manifest if its version is free."""
        if is_detached(version):
            # An entry of a detached version would be taken for the newest version.
            return ConditionalPut(store=self.store).create(version, name, data)
        staged = f"{layout.manifest(name)}-{self.ids.uuid4()}"
        self.store.put(staged, data)
        entry = PublishedEntry(version=version, path=staged, size_bytes=len(data))
        try:
            is_mine = self.external.put_if_not_exists(entry) or self._is_recorded(entry)
        except StorageError as error:
            return Unknown(error)
        if not is_mine:
            with suppress(LanceTableError):
                self.store.delete(staged)
            return Taken()
        with suppress(LanceTableError):
            self._finish(entry)
        return PublishedVersion()

    def latest(self) -> ManifestName | None:
        """Find the newest version; lines without entries are looked up in the object store."""
        entry = self.external.get_latest()
        return latest_manifest(self.store) if entry is None else self._finish(entry)

    def find(self, version: int) -> ManifestName | None:
        """Find the manifest of a version."""
        entry = None if is_detached(version) else self.external.get(version)
        return manifest_of(self.store, version) if entry is None else self._finish(entry)

    def every(self) -> list[ManifestName]:
        """Find all versions of the main line, oldest first."""
        self.latest()
        return every_manifest(self.store)

    def _is_recorded(self, entry: PublishedEntry) -> bool:
        """Whether an earlier attempt of the same request succeeded and its reply was lost."""
        found = self.external.get(entry.version)
        return found is not None and found.path == entry.path

    def _finish(self, entry: PublishedEntry) -> ManifestName:
        """Copy a recorded manifest to its final name, unless that was done."""
        staged = confined_path(entry.path)
        path = _final_path(staged)
        name = taken_apart(path.rpartition("/")[2])
        if entry.is_final:
            return name
        try:
            self.store.copy(staged, path)
        except ObjectNotFoundError as error:
            if not self.store.exists(path):
                problem = f"the manifest of version {entry.version} is lost"
                raise CorruptTableError(problem, path=staged) from error
            return name
        self.external.put_final(
            PublishedEntry(
                version=entry.version, path=path, size_bytes=entry.size_bytes, e_tag=None
            )
        )
        self.store.delete(staged)
        return name


def _final_path(staged: str) -> str:
    stem, found, _ = staged.partition(_SUFFIX)
    if not found:
        raise CorruptTableError(f"{staged!r} is not a manifest path", path=staged)
    return stem + _SUFFIX
