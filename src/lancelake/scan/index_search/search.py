"""A condition answered by the indices of a version: the rows to read of each fragment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import assert_never

from pyroaring import BitMap, FrozenBitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.expr.arrays import type_at
from lancelake.expr.condition import Column, Condition, Leaf, SqlLeaf
from lancelake.format.ids import FragmentId
from lancelake.index.answer import ALL_ROWS, NO_ROWS, UNKNOWN, Answer
from lancelake.scan.count import physical_rows
from lancelake.scan.index_search import addresses, cost
from lancelake.scan.index_search.fragment_rows import FoundRows, RowsToRead
from lancelake.scan.index_search.questions import (
    Joined,
    Known,
    Opposite,
    Question,
    Questions,
    Unasked,
    asked,
    column_of_leaf,
    questions_of,
)
from lancelake.scan.index_search.sources import IndexSource, IndexSources
from lancelake.scan.outputs import expression_schema

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
        self, found: Sequence[tuple[BitMap, Answer]], question: Question
    ) -> Iterator[_Group]:
        """Yield the fragments that each answer to one more question is about, and the rest."""
        left = BitMap(self.fragments)
        for covered, answer in found:
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
                found = self.answers.get(questions, UNKNOWN)
                fragments = set(self.fragments)
                return found.mapped(lambda ids: ids.only(fragments))
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
        rows = FoundRows()
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
        return cost.rows_read(self._sources.of(question.column), question)

    def _is_wanted(self, question: Question, groups: Sequence[_Group]) -> bool:
        """Whether a question is cheap, or there are many candidates so far."""
        if self._asks_all or not any(group.answers for group in groups):
            return True
        if not self._rows_read(question):
            return True
        masks = [group.combined(self._questions).maybe_true for group in groups]
        is_bounded = not any(mask.is_inverted for mask in masks)
        return not is_bounded or sum(len(m.ids) for m in masks) > cost.FEW_CANDIDATES

    def _column(self, leaf: Leaf) -> Column | None:
        return indexed_column(self._snapshot, self._sources, leaf)

    def _answers(self, question: Question) -> Iterator[tuple[BitMap, Answer]]:
        """Yield the answers to a question, each with the fragments that it is about."""
        left = BitMap(self._fragments)
        for source in self._sources.of(question.column):
            covered = left & source.coverage.fragments
            if not self._asks_all and not cost.is_worth_asking(source, question):
                continue
            answer = addresses.answer(self._snapshot, source, question) if covered else None
            if answer is not None:
                self._log.append(_logged(source, question, answer))
                left -= covered
                yield covered, answer

    def _rows_of(self, fragment: int) -> int:
        found = self._sources.fragments.by_id()[FragmentId(fragment)]
        return physical_rows(self._snapshot.files, self._snapshot.manifest_at, found)


def indexed_column(snapshot: Snapshot, sources: IndexSources, leaf: Leaf) -> Column | None:
    """Return the indexed column that a condition is about."""
    column = column_of_leaf(leaf)
    if isinstance(leaf, SqlLeaf) and len(set(leaf.expression.paths)) == 1:
        path = leaf.expression.paths[0]
        dtype = type_at(expression_schema(snapshot.manifest.schema), path)
        column = None if dtype is None else Column(path=path, dtype=dtype)
    return column if column is not None and sources.of(column) else None


def _logged(source: IndexSource, question: Question, answer: Answer) -> AskedIndex:
    true = answer.maybe_true
    return AskedIndex(
        index=source.index,
        kind=source.kind.name,
        condition=question.condition,
        is_exact=answer.is_exact,
        rows=len(true.ids),
        are_excluded=true.is_inverted,
    )
