"""Request of a change feed: the versions it covers, and what they changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import latest_version, list_versions
from lancelake.errors import (
    InvalidRequestError,
    RefNotFoundError,
    UnsupportedError,
    VersionNotFoundError,
)
from lancelake.expr.predicate import Filter
from lancelake.storage.location import Location
from lancelake.table.history import history_in_numbers
from lancelake.table.open import (
    AsOf,
    AtTag,
    AtVersion,
    branch_location,
    load_branch,
    load_tag,
    open_snapshot,
)
from lancelake.threads import Future, Pool


class ChangeKind(Enum):
    """Kind of change of a row in the feed; the value is the one written to the change column."""

    INSERT = "insert"
    UPDATE_BEFORE = "update_preimage"
    UPDATE_AFTER = "update_postimage"
    DELETE = "delete"


ALL_KINDS = frozenset(ChangeKind)
_UPDATES = frozenset({ChangeKind.UPDATE_BEFORE, ChangeKind.UPDATE_AFTER})

ROW_ID = "_rowid"
CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
FEED_FIELDS = (
    pa.field(ROW_ID, pa.uint64()),
    pa.field(CHANGE_TYPE, pa.string()),
    pa.field(COMMIT_VERSION, pa.uint64()),
    pa.field(COMMIT_TIMESTAMP, pa.timestamp("us", "UTC")),
)
FEED_NAMES = tuple(field.name for field in FEED_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """Columns of the last version, a filter on rows of the feed, and the kinds of changes.

    `is_net` requests the net difference between the first and the last version.
    """

    columns: tuple[str, ...] | None = None
    filter: Filter | None = None
    kinds: frozenset[ChangeKind] = ALL_KINDS
    batch_rows: int | None = None
    is_net: bool = False


def parse_kinds(names: str | Iterable[str] | None) -> frozenset[ChangeKind]:
    """Parse kinds of changes; "update" selects both images, None selects all kinds."""
    if names is None:
        return ALL_KINDS
    kinds: set[ChangeKind] = set()
    for name in (names,) if isinstance(names, str) else names:
        if name == "update":
            kinds |= _UPDATES
        else:
            kinds.add(_kind(name))
    return frozenset(kinds)


def _kind(name: str) -> ChangeKind:
    try:
        return ChangeKind(name)
    except ValueError as error:
        valid = ", ".join(["update", *(kind.value for kind in ChangeKind)])
        problem = f"unknown kind of change {name!r}; valid kinds: {valid}"
        raise InvalidRequestError(problem, kind=name) from error


_LOADED_AHEAD = 8

Point = AtVersion | AtTag | AsOf


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Versions committed at one location: those after `after`, up to and including `last`."""

    location: Location
    after: int
    last: int | None

    def holds(self, version: int) -> bool:
        """Whether a version was committed at this location."""
        return self.after < version and (self.last is None or version <= self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRange:
    """Versions after `begin`, up to and including `end`, in the history of a snapshot."""

    opened: Snapshot
    stretches: tuple[Stretch, ...]
    begin: int
    end: int

    def after(self, version: int) -> Snapshot:
        """Open a version at the location where it was committed."""
        return self._open(self.place(version), version)

    def steps_back(self) -> Iterator[tuple[Snapshot | None, Snapshot]]:
        """Yield each version with its predecessor, the last first; None before version 1.

        The predecessor of a branch's first version is the branch's own copy of the version it
        forked from.
        """
        numbers = range(self.end, self.begin, -1)
        loaded = self._load(need for number in numbers for need in self._needs(number))
        before: Snapshot | None = None
        for number in numbers:
            after = before if before is not None and not self._starts(number) else next(loaded)
            before = next(loaded) if number > 1 else None
            yield before, after

    def _starts(self, version: int) -> bool:
        """Whether the version after this one was committed at another location, or is excluded."""
        return version == self.end or self.place(version) != self.place(version + 1)

    def _needs(self, version: int) -> Iterator[tuple[Location, int]]:
        place = self.place(version)
        if self._starts(version):
            yield place, version
        if version > 1:
            yield place, version - 1

    def _load(self, needs: Iterable[tuple[Location, int]]) -> Iterator[Snapshot]:
        """Yield versions in order, loading the next ones in parallel."""
        with Pool(_LOADED_AHEAD) as pool:
            running: deque[Future[Snapshot]] = deque()
            for need in needs:
                running.append(pool.submit(self._open, *need))
                if len(running) == _LOADED_AHEAD:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()

    def at(self, version: int) -> Snapshot | None:
        """Open a single version; None for version 0, before the table existed."""
        return None if version == 0 else self.after(version)

    def place(self, version: int) -> Location:
        """Return the location where a version was committed."""
        return next(s.location for s in self.stretches if s.holds(version))

    def _open(self, location: Location, version: int) -> Snapshot:
        if (location, version) == (self.opened.location, self.opened.version):
            return self.opened
        try:
            return open_snapshot(location, AtVersion(version))
        except VersionNotFoundError as error:
            raise self._gone(location, version) from error

    def _gone(self, location: Location, version: int) -> VersionNotFoundError:
        names = list_versions(location)
        oldest = min((name.version for name in names if name.version > version), default=None)
        if oldest is None:
            problem = f"version {version} was not found"
            return VersionNotFoundError(problem, table=location.uri, version=version)
        problem = (
            f"the changes after version {self.begin} up to version {self.end} need version "
            f"{version}, which was cleaned up or never existed at this location"
        )
        action = (
            f"Start at version {oldest} or later. To keep versions for later, clean up less, "
            "or tag the first version and read net changes."
        )
        return VersionNotFoundError(problem, table=location.uri, version=version, action=action)


def version_range(snapshot: Snapshot, begin: Point, end: Point | None) -> VersionRange:
    """Return the versions between two points; `end` defaults to the snapshot itself."""
    line = _line(snapshot)
    main = snapshot.main_location
    last = snapshot.version if end is None else _number(main, line, end, is_begin=False)
    first = _number(main, line, begin, is_begin=True)
    place = snapshot.location.uri
    highest = max(first, last)
    if highest > snapshot.version:
        newest = latest_version(snapshot.location).version
        if highest > newest:
            problem = f"version {highest} was not found; the latest is {newest}"
            raise VersionNotFoundError(problem, table=place, version=highest)
    if first > last:
        problem = f"begin version {first} is newer than end version {last}"
        raise InvalidRequestError(problem, table=place, begin=first, end=last)
    return VersionRange(opened=snapshot, stretches=line, begin=first, end=last)


def ensure_row_ids(*snapshots: Snapshot | None) -> None:
    """Raise if a version has no stable row ids."""
    for snapshot in snapshots:
        # Release 4 derives the flag of stable row ids from fragments, and clears it on an empty
        # table.
        if snapshot is None or not snapshot.manifest.fragments:
            continue
        if not snapshot.manifest.has_stable_row_ids:
            raise UnsupportedError(
                f"row-level changes cannot be determined: version {snapshot.version} has "
                "no stable row ids",
                table=snapshot.location.uri,
                version=snapshot.version,
                action=(
                    "Create the table with enable_stable_row_ids=True, or copy its rows into "
                    "such a table; existing tables cannot be converted."
                ),
            )


def _line(snapshot: Snapshot) -> tuple[Stretch, ...]:
    main = snapshot.main_location
    stretches: list[Stretch] = []
    branch, last = snapshot.branch, None
    while branch not in (None, "main") and main != snapshot.location:
        ref = load_branch(main, branch or "")
        place = branch_location(main, branch)
        stretches.append(Stretch(location=place, after=ref.parent_version, last=last))
        branch, last = ref.parent_branch, ref.parent_version
    place = snapshot.location if not stretches else main
    stretches.append(Stretch(location=place, after=0, last=last))
    return tuple(reversed(stretches))


def _number(main: Location, line: tuple[Stretch, ...], point: Point, *, is_begin: bool) -> int:
    match point:
        case AtVersion(version):
            if version < 0:
                problem = f"{version} is not a version"
                raise InvalidRequestError(problem, table=main.uri, version=version)
            return version
        case AtTag(tag):
            return _version_of_tag(main, line, tag)
        case AsOf(time_us):
            return _as_of(line, time_us, is_begin=is_begin)


def _version_of_tag(main: Location, line: tuple[Stretch, ...], name: str) -> int:
    tag = load_tag(main, name)
    place = branch_location(main, tag.branch)
    if any(s.location == place and s.holds(tag.version) for s in line):
        return tag.version
    forked_here = any(s.location == place and s.after == tag.version for s in line)
    if forked_here:
        return tag.version
    problem = (
        f"tag {name} refers to version {tag.version}, which is not in the history of this version"
    )
    raise RefNotFoundError(problem, table=main.uri, tag=name)


def _as_of(line: tuple[Stretch, ...], time_us: int, *, is_begin: bool) -> int:
    """Return the version to start after, or to end with, for a time.

    Commit times come from the clocks of writers and need not ascend. The range includes every
    version committed after its begin time and up to its end time, and all versions between them;
    versions after one whose commit time equals the begin time are always included.
    """
    committed = [
        (facts.version, None if facts.timestamp_ns is None else facts.timestamp_ns // 1000)
        for stretch in line
        for facts in history_in_numbers(stretch.location)
        if stretch.holds(facts.version)
    ]
    if is_begin and committed:
        newest = committed[-1][0]
        same = (version for version, us in committed if us == time_us)
        later = (version - 1 for version, us in committed if us is None or us > time_us)
        return min(next(same, newest), next(later, newest))
    earlier = (version for version, us in reversed(committed) if us is not None and us <= time_us)
    version = next(earlier, None)
    if version is None:
        problem = "the time is earlier than the first version of this dataset"
        raise VersionNotFoundError(problem, table=line[-1].location.uri)
    return version
