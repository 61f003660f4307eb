"""Request of a change feed: the versions it covers, and what they changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import pyarrow as pa

from lancelake import errors
from lancelake.commit.snapshot import (
    AsOf,
    AtTag,
    AtVersion,
    Snapshot,
    branch_location,
    latest_version,
    list_versions,
    load_branch,
    load_tag,
    open_snapshot,
)
from lancelake.expr.predicate import Filter, Predicate
from lancelake.format import rowids
from lancelake.format.fragment import ExternalFile, Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.rowids import Range, RangeWithBitmap, RangeWithHoles, Segment
from lancelake.format.schema import Field, Schema
from lancelake.scan.request import ColumnOutput
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.table.history import history_in_numbers
from lancelake.threads import Future, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSpec:
    """Settings shared by all tasks of a feed; `last` is the schema of the last version."""

    last: Schema
    outputs: tuple[ColumnOutput, ...]
    schema: pa.Schema
    predicate: Predicate | None
    kinds: frozenset[ChangeKind]
    batch_rows: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The version that changes belong to."""

    version: int
    timestamp_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFiles:
    """A version to read from; `view` maps the columns of the last version to it."""

    version: int
    files: TableFiles
    manifest_at: FileAt
    view: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A fragment of a version."""

    at: VersionFiles
    fragment: Fragment


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsTask:
    """Inserted or deleted rows: the live rows of a fragment that are in none of `others`."""

    spec: FeedSpec
    commit: Commit
    kind: ChangeKind
    side: Side
    others: tuple[Side, ...]

    @property
    def fragment(self) -> Fragment:
        """The fragment with the rows."""
        return self.side.fragment


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTask:
    """Rows that two fragments share and that changed between them.

    A row is marked if its last updated version differs between the two sides. `trusts_marks` means
    that marked rows are changed rows; any other row changed if a column of `compared` differs, and
    rows without a mark are only examined if `compares_unmarked` is set.
    """

    spec: FeedSpec
    commit: Commit
    before: Side
    after: Side
    compared: tuple[str, ...]
    trusts_marks: bool
    compares_unmarked: bool

    @property
    def fragment(self) -> Fragment:
        """The newer fragment of the two."""
        return self.after.fragment


ChangeTask = RowsTask | PairTask


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFeedPlan:
    """The tasks in commit order; within a commit, deletes, then updates, then inserts."""

    spec: FeedSpec
    begin: int
    end: int
    tasks: tuple[ChangeTask, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns that the feed returns."""
        return self.spec.schema


def needed_columns(spec: FeedSpec) -> tuple[str, ...]:
    """Return the columns of the table that outputs and filter need."""
    filters = () if spec.predicate is None else spec.predicate.paths
    tops = [output.path[0] for output in spec.outputs] + [path[0] for path in filters]
    columns = set(spec.last.names)
    return tuple(name for name in dict.fromkeys(tops) if name in columns)


Span = tuple[int, int]
_EVERY_ID: Span = (0, (1 << 64) - 1)
_NO_ID: Span = (1, 0)


@dataclass(frozen=True, slots=True)
class ComparedFragment:
    """A fragment that differs between the versions, with the minimum and maximum of its row ids."""

    side: Side
    span: Span

    @property
    def fragment(self) -> Fragment:
        """The fragment itself."""
        return self.side.fragment


class FragmentSpans:
    """Finds the fragments of one version that may share rows with a fragment of the other."""

    def __init__(self, candidates: Sequence[ComparedFragment]) -> None:
        self._candidates = candidates
        self._least = np.array([c.span[0] for c in candidates], np.uint64)
        self._highest = np.array([c.span[1] for c in candidates], np.uint64)

    def overlapping(self, one: ComparedFragment) -> list[ComparedFragment]:
        """Return those whose row ids may be among those of a fragment."""
        least, highest = (np.uint64(end) for end in one.span)
        meets = (self._least <= highest) & (self._highest >= least)
        return [self._candidates[int(i)] for i in np.flatnonzero(meets)]


def differing(
    before: VersionFiles,
    old: Sequence[Fragment],
    after: VersionFiles,
    new: Sequence[Fragment],
    *,
    last: Schema | None,
) -> tuple[list[ComparedFragment], list[ComparedFragment]]:
    """Return the fragments of each version that are not identical in the other.

    If the versions have different columns (those of `last`), a fragment may be identical and still
    supply more columns in one version than in the other.
    """
    gone, come = _find_changed(before, FragmentList.of(old), after, FragmentList.of(new))
    if last is not None:
        olds = {f.id: f for f in old if f.id not in gone}
        news = {f.id: f for f in new if f.id not in come}
        for number in olds.keys() & news.keys():
            sides = Side(at=before, fragment=olds[number]), Side(at=after, fragment=news[number])
            if rewritten_columns(*sides, last):
                gone[number], come[number] = olds[number], news[number]
    return candidates(before, _by_id(gone)), candidates(after, _by_id(come))


def _by_id(fragments: Mapping[FragmentId, Fragment]) -> list[Fragment]:
    return [fragments[number] for number in sorted(fragments)]


def _find_changed(
    before: VersionFiles, old: FragmentList, after: VersionFiles, new: FragmentList
) -> tuple[dict[FragmentId, Fragment], dict[FragmentId, Fragment]]:
    if before.files == after.files:
        gone, come = old.changed_since(new), new.changed_since(old)
        return {f.id: f for f in gone}, {f.id: f for f in come}
    olds = {f.id: _with_absolute_paths(before.files, f) for f in old}
    news = {f.id: _with_absolute_paths(after.files, f) for f in new}
    same = {i for i, f in news.items() if f == olds.get(i)}
    return {f.id: f for f in old if f.id not in same}, {f.id: f for f in new if f.id not in same}


def candidates(at: VersionFiles, fragments: Sequence[Fragment]) -> list[ComparedFragment]:
    """Return all fragments of a version as candidates."""
    return [ComparedFragment(Side(at=at, fragment=f), _span(at, f)) for f in fragments]


def rewritten_columns(before: Side, after: Side, last: Schema) -> tuple[str, ...]:
    """Return the columns whose files differ between the two sides."""
    old, new = (_supply(side) for side in (before, after))
    views = zip(before.at.view.fields, after.at.view.fields, last.fields, strict=True)
    return tuple(
        top.name
        for was, became, top in views
        if [old.get(i) for i in _columns(was)] != [new.get(i) for i in _columns(became)]
    )


def _columns(field: Field) -> Iterator[FieldId]:
    return (node.id for node in field.walk() if node.owns_column)


def has_same_rows(before: Fragment, after: Fragment) -> bool:
    """Whether two fragments are the same fragment, with the same physical rows."""
    return before.id == after.id and before.row_ids == after.row_ids


def has_same_deletions(before: Side, after: Side) -> bool:
    """Whether the same rows of a fragment are deleted on both sides."""
    old, new = (_deletion_place(side) for side in (before, after))
    return old == new


def _deletion_place(side: Side) -> str | None:
    entry = side.fragment.deletion_file
    return None if entry is None else side.at.files.deletion_file(side.fragment.id, entry).uri


def _supply(side: Side) -> dict[FieldId, str]:
    """Return the file that supplies each field; the first of several files wins."""
    places: dict[FieldId, str] = {}
    for file in side.fragment.files:
        place = side.at.files.data_file(file).uri
        for number in file.fields:
            places.setdefault(number, place)
    return places


def _with_absolute_paths(files: TableFiles, fragment: Fragment) -> Fragment:
    """Return a fragment with absolute file paths, independent of base ids."""
    entries = tuple(replace(f, path=files.data_file(f).uri, base_id=None) for f in fragment.files)
    deletion = fragment.deletion_file
    return replace(
        fragment,
        files=entries,
        deletion_file=None if deletion is None else replace(deletion, base_id=None),
    )


def _span(at: VersionFiles, fragment: Fragment) -> Span:
    match fragment.row_ids:
        case None:
            problem = f"fragment {fragment.id} has no row ids although row ids are stable"
            raise errors.CorruptTableError(problem, table=at.files.root.uri, version=at.version)
        case ExternalFile():
            return _EVERY_ID
        case bytes() as data:
            ends = [end for part in rowids.decode_row_ids(data) for end in _ends(part)]
            return (min(ends), max(ends)) if ends else _NO_ID


def _ends(part: Segment) -> tuple[int, ...]:
    if rowids.length(part) == 0:
        return ()
    if isinstance(part, Range | RangeWithHoles | RangeWithBitmap):
        return (part.start, part.end - 1)
    values = rowids.segment_values(part)
    return (int(values.min()), int(values.max()))


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
        raise errors.InvalidRequestError(problem, kind=name) from error


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
        except errors.VersionNotFoundError as error:
            raise self._gone(location, version) from error

    def _gone(self, location: Location, version: int) -> errors.VersionNotFoundError:
        names = list_versions(location)
        oldest = min((name.version for name in names if name.version > version), default=None)
        if oldest is None:
            problem = f"version {version} was not found"
            return errors.VersionNotFoundError(problem, table=location.uri, version=version)
        problem = (
            f"the changes after version {self.begin} up to version {self.end} need version "
            f"{version}, which was cleaned up or never existed at this location"
        )
        action = (
            f"Start at version {oldest} or later. To keep versions for later, clean up less, "
            "or tag the first version and read net changes."
        )
        return errors.VersionNotFoundError(
            problem, table=location.uri, version=version, action=action
        )


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
            raise errors.VersionNotFoundError(problem, table=place, version=highest)
    if first > last:
        problem = f"begin version {first} is newer than end version {last}"
        raise errors.InvalidRequestError(problem, table=place, begin=first, end=last)
    return VersionRange(opened=snapshot, stretches=line, begin=first, end=last)


def ensure_row_ids(*snapshots: Snapshot | None) -> None:
    """Raise if a version has no stable row ids."""
    for snapshot in snapshots:
        # Release 4 derives the flag of stable row ids from fragments, and clears it on an empty
        # table.
        if snapshot is None or not snapshot.manifest.fragments:
            continue
        if not snapshot.manifest.has_stable_row_ids:
            raise errors.UnsupportedError(
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
                raise errors.InvalidRequestError(problem, table=main.uri, version=version)
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
    raise errors.RefNotFoundError(problem, table=main.uri, tag=name)


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
        raise errors.VersionNotFoundError(problem, table=line[-1].location.uri)
    return version
