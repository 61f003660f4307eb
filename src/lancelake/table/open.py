"""Opening a table at a version, branch or tag."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar, assert_never

from lancelake import events
from lancelake.commit.ref_files import missing_ref, ref_names
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import find_version, latest_version, list_versions
from lancelake.errors import (
    InvalidRequestError,
    LanceTableError,
    ObjectNotFoundError,
    TableNotFoundError,
    VersionNotFoundError,
    naming,
)
from lancelake.format import layout, refs
from lancelake.format.layout import ensure_branch_name, ensure_tag_name
from lancelake.format.refs import Branch, Tag
from lancelake.storage.location import Location

Document = TypeVar("Document", Tag, Branch)


def list_tags(main: Location) -> dict[str, Tag]:
    """Return all tags by name, sorted."""
    return _listed(main, layout.TAGS, refs.decode_tag)


def load_tag(main: Location, name: str) -> Tag:
    """Read one tag."""
    with naming(main.uri):
        ensure_tag_name(name)
    return _loaded(main, layout.tag(name), f"tag {name}", refs.decode_tag)


def list_branches(main: Location) -> dict[str, Branch]:
    """Return all branches by name, sorted."""
    return _listed(main, layout.BRANCHES, refs.decode_branch)


def load_branch(main: Location, name: str) -> Branch:
    """Read one branch."""
    with naming(main.uri):
        ensure_branch_name(name)
    return _loaded(main, layout.branch(name), f"branch {name}", refs.decode_branch)


def branch_location(main: Location, name: str | None) -> Location:
    """Return the root of a branch; the table's own root for the main line."""
    return main if name in (None, "main") else main.child(layout.branch_root(name or ""))


def _listed(
    main: Location, folder: str, decode: Callable[[bytes], Document]
) -> dict[str, Document]:
    named = sorted(ref_names(main.store, folder).items())
    return {name: _loaded(main, path, path, decode) for name, path in named}


def _loaded(main: Location, path: str, what: str, decode: Callable[[bytes], Document]) -> Document:
    store = main.store
    with naming(main.uri):
        try:
            return decode(store.get(path))
        except ObjectNotFoundError as error:
            raise missing_ref(store, path, what) from error


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MILLISECONDS = re.compile(r"[.,]\d{3}(?!\d)")


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
    """The newest version committed up to a time, the whole of that microsecond included.

    Manifests have nanoseconds, and no face prints more than microseconds.
    """

    time_us: int


Reference = Latest | AtVersion | AtTag | OnBranch | AsOf


def open_snapshot(
    location: Location, reference: Reference, *, main: Location | None = None
) -> Snapshot:
    """Open a version; `main` is the table's root when `location` is that of a branch."""
    try:
        snapshot = _opened(location, reference, main or location)
    except LanceTableError:
        _report(location, reference, status="error")
        raise
    _report(location, reference, status="success", version=snapshot.version)
    return snapshot


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
            tag_entry = load_tag(root, tag)
            return _on_branch(root, tag_entry.branch, tag_entry.version)
        case OnBranch(branch, version):
            return _on_branch(root, branch, version)
        case AsOf(time_us):
            return _as_of(location, time_us)
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


def time_reference(when: datetime | str) -> AsOf:
    """Convert a time, or its ISO 8601 text, to a reference; without a time zone it is local.

    Text with milliseconds includes the whole millisecond.
    """
    if isinstance(when, datetime):
        return AsOf((when.astimezone(UTC) - _EPOCH) // _MICROSECOND)
    try:
        time_us = time_reference(datetime.fromisoformat(when.strip())).time_us
    except ValueError as error:
        action = "Write it as 2026-01-31T12:00:00Z."
        raise InvalidRequestError(f"{when!r} is not a valid time", action=action) from error
    return AsOf(time_us + 999 if _MILLISECONDS.search(when) else time_us)


def _on_branch(root: Location, branch: str | None, version: int | None) -> Snapshot:
    if branch not in (None, "main"):
        load_branch(root, branch or "")
    place = branch_location(root, branch)
    return open_snapshot(place, Latest() if version is None else AtVersion(version), main=root)


def _as_of(location: Location, time_us: int) -> Snapshot:
    """Search backwards from the newest version for the first one that is old enough."""
    oldest: Snapshot | None = None
    for name in reversed(list_versions(location)):
        snapshot = Snapshot.load(location, name)
        written_ns = snapshot.manifest.timestamp_ns
        if written_ns is not None and written_ns // 1000 <= time_us:
            return snapshot
        oldest = snapshot
    if oldest is None:
        latest_version(location)
    since = f": the oldest was written {oldest.manifest.timestamp}" if oldest else ""
    problem = f"the time is earlier than the first version of this dataset{since}"
    raise VersionNotFoundError(problem, table=location.uri)
