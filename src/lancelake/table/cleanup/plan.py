"""Cleanup plan: the versions and files to remove or keep, with reasons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from lancelake.storage.location import Location
from lancelake.table.reachable.file_kinds import FileKind
from lancelake.table.reachable.listing import ListedFile


class Reason(StrEnum):
    """Reason to remove or keep a file or version."""

    OLD = "it is old enough, and nothing retains it"
    DROPPED = "only removed versions refer to it"
    BEGUN = "an interrupted cleanup had started to remove it"
    ABANDONED = "no version refers to it"

    NEEDED = "a version refers to it"
    NEEDED_ELSEWHERE = "a branch or a clone within the table refers to it"
    IN_FLIGHT = "an uncommitted transaction refers to it"
    YOUNG = "no version refers to it, but it may belong to a write in progress"
    UNKNOWN = "it is not a file of a table"

    LATEST = "it is the newest, or not older than the one the cleanup started from"
    TAGGED = "a tag refers to it"
    FORK = "a branch was forked from it"
    DETACHED = "it is detached, and is only removed if it is named"
    RECENT = "it is not old enough, or is among the versions to retain"


# Tuples, since thousands are created: they take a third of the time of frozen dataclasses.
class PlannedVersion(NamedTuple):
    """A version with the reason to remove or keep it; `name` is that of its manifest."""

    name: str
    version: int
    timestamp_ns: int | None
    reason: Reason


class PlannedFile(NamedTuple):
    """A file with the reason to remove or keep it."""

    path: str
    kind: FileKind
    size_bytes: int
    reason: Reason
    modified_ns: int | None = None
    """Time of the last change; None for manifests of known versions."""

    @property
    def is_unverified(self) -> bool:
        """Whether no version is known to refer to it."""
        return self.reason is Reason.ABANDONED


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedBranch:
    """A branch that was forked from a version of the line."""

    name: str
    version: int
    is_candidate: bool
    """Whether the version would be removed if the branch did not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupPlan:
    """Versions and files of one version line to remove or keep; `files` include manifests."""

    location: Location
    branch: str | None
    read_version: int
    going_versions: tuple[PlannedVersion, ...] = ()
    staying_versions: tuple[PlannedVersion, ...] = ()
    going: tuple[PlannedFile, ...] = ()
    staying: tuple[PlannedFile, ...] = ()
    branches: tuple[ReferencedBranch, ...] = ()

    @property
    def totals(self) -> dict[FileKind, Totals]:
        """Count the files to remove, by kind."""
        return count(self.going)

    @property
    def waiting(self) -> tuple[PlannedFile, ...]:
        """Files that no version refers to, kept because a write in progress may need them."""
        reasons = (Reason.YOUNG, Reason.IN_FLIGHT)
        return tuple(file for file in self.staying if file.reason in reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """A number of files and their size."""

    files: int = 0
    size_bytes: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(files=self.files + other.files, size_bytes=self.size_bytes + other.size_bytes)


def count(files: Iterable[PlannedFile]) -> dict[FileKind, Totals]:
    """Count files by kind."""
    numbers: dict[FileKind, int] = {}
    sizes: dict[FileKind, int] = {}
    for file in files:
        numbers[file.kind] = numbers.get(file.kind, 0) + 1
        sizes[file.kind] = sizes.get(file.kind, 0) + file.size_bytes
    return {kind: Totals(files=numbers[kind], size_bytes=sizes[kind]) for kind in numbers}


def planned(file: ListedFile, reason: Reason) -> PlannedFile:
    """Return a listed file with a reason."""
    return PlannedFile(file.path, file.kind, file.size_bytes, reason, file.modified_ns)
