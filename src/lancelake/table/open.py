"""Open a version of a table by number, tag, branch or time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from lancelake import events
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import find_version, latest_version, list_versions
from lancelake.errors import LanceTableError, TableNotFoundError, VersionNotFoundError
from lancelake.storage.location import Location
from lancelake.table.refs import branch_location, load_branch, load_tag


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest version."""


@dataclass(frozen=True, slots=True)
class AtVersion:
    """A version by number."""

    version: int


@dataclass(frozen=True, slots=True)
class AtTag:
    """The version of a tag."""

    tag: str


@dataclass(frozen=True, slots=True)
class OnBranch:
    """A version of a branch; by default its newest."""

    branch: str | None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class AsOf:
    """The newest version committed before a time."""

    time_ns: int


Reference = Latest | AtVersion | AtTag | OnBranch | AsOf


def open_snapshot(
    location: Location, reference: Reference, *, main: Location | None = None
) -> Snapshot:
    """Open a version; `main` is the table's root when `location` is that of a branch."""
    try:
        found = _opened(location, reference, main or location)
    except LanceTableError:
        _report(location, reference, status="error")
        raise
    _report(location, reference, status="success", version=found.version)
    return found


def _report(location: Location, reference: Reference, **facts: object) -> None:
    if events.are_heard():
        ref = "None" if isinstance(reference, Latest) else reference
        events.emit(events.DATASET, event="loading", uri=location.uri, target_ref=ref, **facts)


def _opened(location: Location, reference: Reference, root: Location) -> Snapshot:
    match reference:
        case Latest():
            return Snapshot.load(location, latest_version(location))
        case AtVersion(version):
            return Snapshot.load(location, find_version(location, version))
        case AtTag(tag):
            found = load_tag(root, tag)
            return _on_branch(root, found.branch, found.version)
        case OnBranch(branch, version):
            return _on_branch(root, branch, version)
        case AsOf(time_ns):
            return _as_of(location, time_ns)
        case _:
            assert_never(reference)


def open_existing(location: Location, branch: str | None = None) -> Snapshot | None:
    """Open the newest version of a table or of its branch; None if there is no table.

    A branch must exist.
    """
    if branch is not None:
        return open_snapshot(location, OnBranch(branch))
    try:
        return open_snapshot(location, Latest())
    except TableNotFoundError:
        return None


def time_reference(when: datetime | int) -> AsOf:
    """Convert a time to a reference; a time without a time zone is local."""
    if isinstance(when, int):
        return AsOf(when)
    whole = when.replace(microsecond=0)
    return AsOf(int(whole.timestamp()) * 1_000_000_000 + when.microsecond * 1000)


def _on_branch(root: Location, branch: str | None, version: int | None) -> Snapshot:
    if branch not in (None, "main"):
        load_branch(root, branch or "")
    place = branch_location(root, branch)
    return open_snapshot(place, Latest() if version is None else AtVersion(version), main=root)


def _as_of(location: Location, time_ns: int) -> Snapshot:
    """Search backwards from the newest version for the first one that is old enough."""
    oldest: Snapshot | None = None
    for name in reversed(list_versions(location)):
        snapshot = Snapshot.load(location, name)
        written_ns = snapshot.manifest.timestamp_ns
        if written_ns is not None and written_ns < time_ns:
            return snapshot
        oldest = snapshot
    if oldest is None:
        latest_version(location)
    since = f": the oldest was written {oldest.manifest.timestamp}" if oldest else ""
    problem = f"the time is earlier than the first version of this dataset{since}"
    raise VersionNotFoundError(problem, table=location.uri)
