"""Select the fragments that may contain changes, and the fragments to compare each with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lancelake.errors import CorruptTableError
from lancelake.format.fragment import ExternalFile, Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.rowids import codec, segment
from lancelake.format.rowids.segment import Range, RangeWithBitmap, RangeWithHoles, Segment
from lancelake.format.schema import Field, Schema
from lancelake.storage.table_files import TableFiles
from lancelake.table.change_feed.tasks import Side, VersionFiles

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


class Overlap:
    """Finds the fragments of one version that may share rows with a fragment of the other."""

    def __init__(self, gone: Sequence[ComparedFragment], come: Sequence[ComparedFragment]) -> None:
        self._gone = _Spans(gone)
        self._come = _Spans(come)

    def with_old(self, old: ComparedFragment) -> list[ComparedFragment]:
        """Return fragments of the newer version."""
        return self._come.meeting(old)

    def with_new(self, new: ComparedFragment) -> list[ComparedFragment]:
        """Return fragments of the older version."""
        return self._gone.meeting(new)


class _Spans:
    def __init__(self, candidates: Sequence[ComparedFragment]) -> None:
        self._candidates = candidates
        self._least = np.array([c.span[0] for c in candidates], np.uint64)
        self._highest = np.array([c.span[1] for c in candidates], np.uint64)

    def meeting(self, one: ComparedFragment) -> list[ComparedFragment]:
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
    gone, come = _changed(before, FragmentList.of(old), after, FragmentList.of(new))
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


def _changed(
    before: VersionFiles, old: FragmentList, after: VersionFiles, new: FragmentList
) -> tuple[dict[FragmentId, Fragment], dict[FragmentId, Fragment]]:
    if before.files == after.files:
        gone, come = old.changed_since(new), new.changed_since(old)
        return {f.id: f for f in gone}, {f.id: f for f in come}
    olds = {f.id: _placed(before.files, f) for f in old}
    news = {f.id: _placed(after.files, f) for f in new}
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
    found: dict[FieldId, str] = {}
    for file in side.fragment.files:
        place = side.at.files.data_file(file).uri
        for number in file.fields:
            found.setdefault(number, place)
    return found


def _placed(files: TableFiles, fragment: Fragment) -> Fragment:
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
            ends = [end for part in codec.decode_row_ids(data) for end in _ends(part)]
            return (min(ends), max(ends)) if ends else _NO_ID


def _ends(part: Segment) -> tuple[int, ...]:
    if segment.length(part) == 0:
        return ()
    if isinstance(part, Range | RangeWithHoles | RangeWithBitmap):
        return (part.start, part.end - 1)
    values = segment.values(part)
    return (int(values.min()), int(values.max()))
