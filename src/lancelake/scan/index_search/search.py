"""Search of the indices of a version: which rows a scan has to read, and rows by their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import assert_never

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, FrozenBitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import RowMeta, known_deletions, physical_rows
from lancelake.errors import CorruptTableError
from lancelake.expr.condition import Column, Condition, Leaf, SqlLeaf
from lancelake.expr.literals import type_at
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.format.row_address import bitmap_of, fragment_of, offset_of, row_addresses
from lancelake.format.rowids import Range, RowIdSequence, U64Array
from lancelake.index import cache
from lancelake.index.kind import IdKind, SortedSegment
from lancelake.index.order import KeyPoints, Positions
from lancelake.index.row_sets import ALL_ROWS, EMPTY, NO_ROWS, UNKNOWN, Answer, RowIds, RowMask
from lancelake.index.stored_segment import Coverage
from lancelake.scan.index_search.sources import (
    IndexSource,
    IndexSources,
    Joined,
    Known,
    Opposite,
    Question,
    Questions,
    Unasked,
    asked,
    column_of_leaf,
    naming_index,
    questions_of,
    uncertain_rows,
)
from lancelake.scan.request import expression_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlaces:
    """The ids of a fragment's rows, deleted ones included, in ascending order."""

    first: int
    count: int
    ids: U64Array | None = None
    """None if all ids of the range are there, in the order of the rows."""
    rows: npt.NDArray[np.int64] | None = None
    """The row of each id; None if they are in the order of the rows."""

    @staticmethod
    def of(sequence: RowIdSequence) -> RowPlaces:
        """Prepare a sequence."""
        if len(sequence.segments) == 1 and isinstance(only := sequence.segments[0], Range):
            return RowPlaces(first=only.start, count=only.end - only.start)
        ids, rows = sequence.values(), None
        if not len(ids):
            return RowPlaces(first=0, count=0)
        if not bool(np.all(ids[1:] > ids[:-1])):
            rows = np.argsort(ids, kind="stable")
            ids = ids[rows]
        return RowPlaces(first=int(ids[0]), count=len(ids), ids=ids, rows=rows)

    @property
    def size_bytes(self) -> int:
        """About how much memory the ids take."""
        return sum(0 if part is None else part.nbytes for part in (self.ids, self.rows))

    def find(self, wanted: U64Array) -> U64Array:
        """Return the rows that have one of these ids, which ascend."""
        return self.located(wanted)[1]

    def located(self, wanted: U64Array) -> tuple[npt.NDArray[np.int64], U64Array]:
        """Return which of ascending ids rows have, and the row of each."""
        if not self.count:
            return np.zeros(0, dtype=np.int64), wanted[:0]
        last = self.first + self.count - 1 if self.ids is None else int(self.ids[-1])
        low = int(np.searchsorted(wanted, np.uint64(self.first), "left"))
        high = int(np.searchsorted(wanted, np.uint64(last), "right"))
        part = wanted[low:high]
        if self.ids is None:
            return np.arange(low, high), part - np.uint64(self.first)
        places = np.searchsorted(self.ids, part)
        is_there = np.flatnonzero(self.ids[places] == part) if len(part) else places
        places = places[is_there]
        rows = places if self.rows is None else self.rows[places]
        return is_there + low, rows.astype(np.uint64)


def row_places(snapshot: Snapshot, fragment: Fragment) -> RowPlaces:
    """Return the ids of a fragment, read once as long as they are kept."""
    count = physical_rows(snapshot.files, snapshot.manifest_at, fragment)

    def read() -> RowPlaces:
        meta = RowMeta(snapshot.files, fragment, count, has_stable_row_ids=True)
        return RowPlaces.of(meta.row_id_sequence())

    part = ("row ids", fragment.row_ids, count)
    return cache.kept(cache.of_table(snapshot), part, read, lambda value: value.size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRows:
    """Live rows with one of several keys: the number of the key and the address of each."""

    fragments: BitMap
    """Fragments of which all such rows are known."""
    points: Positions
    addresses: U64Array


def rows_with_keys(snapshot: Snapshot, column: Column, wanted: KeyPoints) -> KeyRows:
    """Ask the indices that store the key of each row."""
    answered = BitMap()
    parts: list[tuple[Positions, U64Array]] = []
    for source in IndexSources(snapshot).of(column):
        uncertain = uncertain_rows(snapshot, source.coverage)
        fragments = source.coverage.fragments - answered - BitMap(uncertain.parts)
        if not fragments or not isinstance(source.segment, SortedSegment):
            continue
        if source.coverage.moves:
            continue  # its addresses are those before a compaction
        with naming_index(source.index):
            rows = _live(snapshot, source, source.segment, fragments, wanted)
        if rows is not None:
            answered |= fragments
            parts.append(rows)
    points, addresses = _join(parts)
    return KeyRows(fragments=answered, points=points, addresses=addresses)


def _live(
    snapshot: Snapshot,
    source: IndexSource,
    segment: SortedSegment,
    fragments: BitMap,
    wanted: KeyPoints,
) -> tuple[Positions, U64Array] | None:
    """Return the live rows of some fragments; None if a row is there under two keys."""
    points, ids = segment.rows_at(wanted)
    order = np.argsort(ids)
    points, ids = points[order], ids[order]
    if bool((ids[1:] == ids[:-1]).any()):
        return None
    by_id = FragmentList.of(snapshot.manifest.fragments).by_id()
    parts = []
    for number in _candidates(source.coverage, fragments, ids):
        fragment = by_id[FragmentId(number)]
        places, offsets = _within(snapshot, source.coverage, fragment, ids)
        if len(places) and fragment.deletion_file is not None:
            gone = known_deletions(snapshot.files, fragment).to_array()
            is_live = ~np.isin(offsets, np.frombuffer(gone, dtype=np.uint32))
            places, offsets = places[is_live], offsets[is_live]
        parts.append((points[places], row_addresses(fragment.id, offsets)))
    return _join(parts)


def _candidates(coverage: Coverage, fragments: BitMap, ids: U64Array) -> Sequence[int]:
    """Return the fragments that can have one of the ids."""
    if coverage.stored is IdKind.STABLE_ID:
        return list(fragments)
    named = fragment_of(ids)
    return [int(i) for i in np.unique(named) if int(i) in fragments]


def _within(
    snapshot: Snapshot, coverage: Coverage, fragment: Fragment, ids: U64Array
) -> tuple[Positions, U64Array]:
    """Return which of ascending ids are rows of a fragment, and their offsets."""
    if coverage.stored is IdKind.STABLE_ID:
        return row_places(snapshot, fragment).located(ids)
    first, end = np.searchsorted(fragment_of(ids), [fragment.id, fragment.id + 1])
    offsets = offset_of(ids[first:end])
    rows = physical_rows(snapshot.files, snapshot.manifest_at, fragment)
    if len(offsets) and int(offsets[-1]) >= rows:
        msg = f"it names row {int(offsets[-1])} of fragment {fragment.id}, which has {rows}"
        raise CorruptTableError(msg)
    return np.arange(first, end), offsets


def _join(parts: Sequence[tuple[Positions, U64Array]]) -> tuple[Positions, U64Array]:
    if not parts:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    points, addresses = zip(*parts, strict=True)
    return np.concatenate(points), np.concatenate(addresses)


def answer_question(snapshot: Snapshot, source: IndexSource, question: Question) -> Answer | None:
    """Return what a segment knows about the rows of the fragments that it covers.

    None if the segment does not serve the question. Deleted rows may be among those found.
    """
    with naming_index(source.index):
        answer = _ask(source, question)
    if answer is None:
        return None
    coverage = source.coverage
    if coverage.stored is IdKind.ADDRESS:
        return coverage.current(answer)
    placed = answer.mapped(lambda ids: _places(snapshot, coverage.fragments, ids))
    return placed.doubting(uncertain_rows(snapshot, coverage))


def _ask(source: IndexSource, question: Question) -> Answer | None:
    segment = source.segment
    if question.wanted is not None and isinstance(segment, SortedSegment):
        return segment.answer_range(question.wanted)
    answers = [segment.answer(leaf) for leaf in question.leaves]
    usable = [each for each in answers if each is not None]
    if not usable:
        return None
    together = reduce(Answer.__and__, usable)
    return together if len(usable) == len(answers) else together & UNKNOWN


def _places(snapshot: Snapshot, fragments: BitMap, ids: RowIds) -> RowIds:
    """Return the addresses of rows with stable ids that are in some fragments.

    A row that was moved has left its id behind on a deleted row, which is found, too.
    """
    if not ids:
        return EMPTY
    wanted = ids.to_array()
    by_id = FragmentList.of(snapshot.manifest.fragments).by_id()
    parts: dict[int, BitMap] = {}
    for number in fragments:
        offsets = row_places(snapshot, by_id[FragmentId(number)]).find(wanted)
        if len(offsets):
            parts[number] = bitmap_of(offsets.astype(np.uint32))
    return RowIds(parts)


# Fewer rows are read out of an index in no time.
_FEW_READ = 1 << 16
# Reading more than this share of an index takes as long as reading the column.
_MOST_SHARE = 0.25
# So many candidates are checked faster than a costly question is answered.
FEW_CANDIDATES = 1000


def rows_read(sources: Sequence[IndexSource], question: Question) -> int:
    """Estimate how many entries of indices are read to answer a question; 0 for few."""
    return sum(_rows_read(source, question)[0] for source in sources)


def is_worth_asking(source: IndexSource, question: Question) -> bool:
    """Whether a segment answers faster than its column is read."""
    rows, share = _rows_read(source, question)
    return not rows or share <= _MOST_SHARE


def _rows_read(source: IndexSource, question: Question) -> tuple[int, float]:
    segment = source.segment
    if question.wanted is None or not isinstance(segment, SortedSegment):
        return 0, 0.0
    with naming_index(source.index):
        share = segment.share_read(question.wanted)
        rows = int(share * segment.num_rows())
    return (rows, share) if rows > _FEW_READ else (0, share)


# Beyond this share of a fragment, rows that must be checked are found as fast by reading all.
_MOST_CHECKED = 0.5

RowsOf = Callable[[int], int]
"""Number of the rows of a fragment, deleted ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsToRead:
    """Rows of a fragment, deleted ones perhaps among them: those that match, or may match."""

    rows: FrozenBitMap
    is_exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentSelection:
    """The rows to read of fragments; of those that are not named, all have to be read."""

    by_fragment: dict[int, RowsToRead] = field(default_factory=dict)
    empty: BitMap = field(default_factory=BitMap)
    """Fragments without a row to read."""

    def add(self, answer: Answer, fragments: BitMap, rows_of: RowsOf) -> None:
        """Add what is known about some fragments; the answer has no rows of others."""
        maybe, sure = answer.maybe_true, answer.surely_true
        if maybe.is_inverted:
            # Where nothing is excluded, only an answer that is exact says anything.
            named: Iterable[int] = fragments if answer.is_exact else maybe.ids.parts
        else:
            named = maybe.ids.parts
            self.empty.update(fragments - BitMap(named))
        for fragment in named:
            count = rows_of(fragment) if maybe.is_inverted or not answer.is_exact else 0
            rows = _part(maybe, fragment, count)
            if not rows:
                self.empty.add(fragment)
                continue
            is_exact = answer.is_exact or rows == _part(sure, fragment, count)
            if is_exact or len(rows) <= count * _MOST_CHECKED:
                rows_found = RowsToRead(rows=FrozenBitMap(rows), is_exact=is_exact)
                self.by_fragment[fragment] = rows_found


def _part(mask: RowMask, fragment: int, count: int) -> BitMap:
    named = mask.ids.parts.get(fragment, BitMap())
    return BitMap(range(count)) - named if mask.is_inverted else named


_KNOWN = {
    True: Answer(ALL_ROWS, ALL_ROWS, NO_ROWS, NO_ROWS),
    False: Answer(NO_ROWS, NO_ROWS, ALL_ROWS, ALL_ROWS),
    None: Answer(NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedIndex:
    """What a segment of an index was asked, and how many rows it named."""

    index: str
    kind: str
    condition: Condition
    is_exact: bool
    rows: int
    are_excluded: bool
    """Whether the rows that it named are those for which the condition is not true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSearch:
    """What the indices of a version say about the rows for which a condition is true."""

    asked: tuple[AskedIndex, ...]
    found: Mapping[int, RowsToRead]
    """Fragments of which only some rows, at least one, have to be read."""
    empty: FrozenBitMap
    """Fragments without a row to read."""
    covered: FrozenBitMap
    """Fragments about which all questions were answered."""

    @property
    def is_helpful(self) -> bool:
        """Whether there are rows that need not be read."""
        return bool(self.found) or bool(self.empty)


def search(
    snapshot: Snapshot,
    condition: Condition,
    fragments: Sequence[FragmentId],
    *,
    asks_all: bool = False,
) -> IndexSearch | None:
    """Ask the indices about the rows of some fragments; None if there is nothing to ask.

    Questions that cost more than they save are left out, unless all are to be asked. Raise
    DamagedIndexError if a file of an index that is asked is missing or damaged.
    """
    if not snapshot.indices:
        return None
    return _Search(snapshot, condition, BitMap(fragments), asks_all=asks_all).result()


@dataclass(frozen=True, slots=True)
class _Group:
    """Fragments about which the same segments answer."""

    fragments: BitMap
    answers: dict[Question, Answer] = field(default_factory=dict)

    def divided(
        self, answers: Sequence[tuple[BitMap, Answer]], question: Question
    ) -> Iterator[_Group]:
        """Yield the fragments that each answer to one more question is about, and the rest."""
        left = BitMap(self.fragments)
        for covered, answer in answers:
            part = left & covered
            if part:
                yield _Group(part, {**self.answers, question: answer})
                left -= part
        if left:
            yield _Group(left, self.answers)

    def combined(self, questions: Questions) -> Answer:
        """Return the answer to questions about the rows of these fragments."""
        match questions:
            case Question():
                answer = self.answers.get(questions, UNKNOWN)
                fragments = set(self.fragments)
                return answer.mapped(lambda ids: ids.only(fragments))
            case Known():
                return _KNOWN[questions.truth]
            case Unasked():
                return UNKNOWN
            case Opposite():
                return ~self.combined(questions.part)
            case Joined():
                join = Answer.__and__ if questions.is_and else Answer.__or__
                return reduce(join, map(self.combined, questions.parts))
            case _:
                assert_never(questions)


class _Search:
    def __init__(
        self, snapshot: Snapshot, condition: Condition, fragments: BitMap, *, asks_all: bool
    ) -> None:
        self._snapshot = snapshot
        self._fragments = fragments
        self._sources = IndexSources(snapshot)
        self._asks_all = asks_all
        self._questions = questions_of(condition, self._column)
        self._log: list[AskedIndex] = []

    def result(self) -> IndexSearch | None:
        questions = asked(self._questions)
        groups = [_Group(self._fragments)]
        for question in self._by_cost(questions):
            if not self._is_wanted(question, groups):
                continue
            answers = list(self._answers(question))
            groups = [part for group in groups for part in group.divided(answers, question)]
        rows = FragmentSelection()
        for group in groups:
            if group.answers:
                rows.add(group.combined(self._questions), group.fragments, self._rows_of)
        if not self._log:
            return None
        complete = [g.fragments for g in groups if len(g.answers) == len(questions)]
        return IndexSearch(
            asked=tuple(self._log),
            found=rows.by_fragment,
            empty=FrozenBitMap(rows.empty),
            covered=FrozenBitMap(BitMap.union(BitMap(), *complete)),
        )

    def _by_cost(self, questions: Sequence[Question]) -> Sequence[Question]:
        """Put costly questions last: the answers to others may make them needless."""
        if len(questions) <= 1 or self._asks_all:
            return questions
        return sorted(questions, key=self._rows_read)

    def _rows_read(self, question: Question) -> int:
        return rows_read(self._sources.of(question.column), question)

    def _is_wanted(self, question: Question, groups: Sequence[_Group]) -> bool:
        """Whether a question is cheap, or there are many candidates so far."""
        if self._asks_all or not any(group.answers for group in groups):
            return True
        if not self._rows_read(question):
            return True
        masks = [group.combined(self._questions).maybe_true for group in groups]
        is_bounded = not any(mask.is_inverted for mask in masks)
        return not is_bounded or sum(len(m.ids) for m in masks) > FEW_CANDIDATES

    def _column(self, leaf: Leaf) -> Column | None:
        return indexed_column(self._snapshot, self._sources, leaf)

    def _answers(self, question: Question) -> Iterator[tuple[BitMap, Answer]]:
        """Yield the answers to a question, each with the fragments that it is about."""
        left = BitMap(self._fragments)
        for source in self._sources.of(question.column):
            covered = left & source.coverage.fragments
            if not self._asks_all and not is_worth_asking(source, question):
                continue
            answer = answer_question(self._snapshot, source, question) if covered else None
            if answer is not None:
                self._log.append(_record(source, question, answer))
                left -= covered
                yield covered, answer

    def _rows_of(self, fragment: int) -> int:
        fragment_of_rows = self._sources.fragments.by_id()[FragmentId(fragment)]
        return physical_rows(self._snapshot.files, self._snapshot.manifest_at, fragment_of_rows)


def indexed_column(snapshot: Snapshot, sources: IndexSources, leaf: Leaf) -> Column | None:
    """Return the indexed column that a condition is about."""
    column = column_of_leaf(leaf)
    if isinstance(leaf, SqlLeaf) and len(set(leaf.expression.paths)) == 1:
        path = leaf.expression.paths[0]
        dtype = type_at(expression_schema(snapshot.manifest.schema), path)
        column = None if dtype is None else Column(path=path, dtype=dtype)
    return column if column is not None and sources.of(column) else None


def _record(source: IndexSource, question: Question, answer: Answer) -> AskedIndex:
    true = answer.maybe_true
    return AskedIndex(
        index=source.index,
        kind=source.kind.name,
        condition=question.condition,
        is_exact=answer.is_exact,
        rows=len(true.ids),
        are_excluded=true.is_inverted,
    )


# Counts by fragment are an array, indexed by fragment ids.
_GREATEST_ID = 1 << 20


def count_in_range(snapshot: Snapshot, condition: Condition) -> int | None:
    """Count the rows for which a condition is true; None if rows have to be looked at.

    That is possible if the condition is a range of an indexed column, no row is deleted, and one
    segment has exactly one entry for each row of the version.
    """
    fragments = FragmentList.of(snapshot.manifest.fragments)
    if not snapshot.indices or any(t.has_deletions for t in fragments.traits()):
        return None
    sources = IndexSources(snapshot)
    question = questions_of(condition, lambda leaf: indexed_column(snapshot, sources, leaf))
    if not isinstance(question, Question) or question.wanted is None:
        return None
    every = BitMap(fragments.ids)
    if not every or every.max() > _GREATEST_ID:
        return None
    for source in sources.of(question.column):
        segment = source.segment
        if not isinstance(segment, SortedSegment) or not _is_complete(source, every):
            continue
        with naming_index(source.index):
            if segment.num_entries() != fragments.live_rows():
                continue
            if not is_worth_asking(source, question):
                return None
            ids = segment.ids_in_range(question.wanted)
        return _count_within(ids, every)
    return None


def _is_complete(source: IndexSource, fragments: BitMap) -> bool:
    """Whether a segment stores the current addresses of the rows of all fragments."""
    coverage = source.coverage
    is_current = coverage.stored is IdKind.ADDRESS and not coverage.moves
    return is_current and coverage.fragments == fragments


def _count_within(ids: U64Array, fragments: BitMap) -> int:
    """Count the addresses in some fragments; others are of rows that the version does not have."""
    places = fragment_of(ids)
    numbers = places[places <= fragments.max()].astype(np.int64)
    counts = np.bincount(numbers, minlength=fragments.max() + 1)
    return int(counts[list(fragments)].sum())
