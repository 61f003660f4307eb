"""Tasks of a change feed: the fragments and rows that hold the changes of a version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lancelake.errors import CorruptTableError
from lancelake.expr.predicate import Predicate
from lancelake.feed.request import ChangeKind
from lancelake.format import rowids
from lancelake.format.fragment import ExternalFile, Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.rowids import Range, RangeWithBitmap, RangeWithHoles, Segment
from lancelake.format.schema import Field, Schema
from lancelake.scan.request import ColumnOutput
from lancelake.storage.table_files import FileAt, TableFiles


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
            raise CorruptTableError(problem, table=at.files.root.uri, version=at.version)
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
