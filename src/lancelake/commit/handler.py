"""Commit handler interface: publishes versions and finds published ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lancelake.errors import StorageError
from lancelake.format.names import ManifestName


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """The version was free and is published."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The version exists: another writer's, or this one's from an attempt whose reply was lost."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The store failed, so the version may or may not be published."""

    cause: StorageError


Outcome = PublishedVersion | Taken | Unknown


class CommitHandler(Protocol):
    """Publishes and finds the versions of one line, stored below one root."""

    def create(self, version: int, name: str, data: bytes) -> Outcome:
        """Publish a manifest if its version is free; of several racing calls one succeeds."""
        ...

    def latest(self) -> ManifestName | None:
        """Find the newest version of the main line."""
        ...

    def find(self, version: int) -> ManifestName | None:
        """Find the manifest of a version, whichever way it is named."""
        ...

    def every(self) -> list[ManifestName]:
        """Find all versions of the main line, oldest first."""
        ...
