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
from lancelake.scan.index_search import addresses
from lancelake.scan.index_search.fragment_rows import FoundRows, FragmentRows
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
from lancelake.scan.index_search.sources import IndexSources, Source
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
    found: Mapping[int, FragmentRows]
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
    snapshot: Snapshot, condition: Condition, fragments: Sequence[FragmentId]
) -> IndexSearch | None:
    """Ask the indices about the rows of some fragments; None if there is nothing to ask.

    Raise DamagedIndexError if a file of an index that is asked is missing or damaged.
    """
    return _Search(snapshot, condition, BitMap(fragments)).result() if snapshot.indices else None


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
    def __init__(self, snapshot: Snapshot, condition: Condition, fragments: BitMap) -> None:
        self._snapshot = snapshot
        self._fragments = fragments
        self._sources = IndexSources(snapshot)
        self._questions = questions_of(condition, self._column)
        self._log: list[AskedIndex] = []

    def result(self) -> IndexSearch | None:
        questions = asked(self._questions)
        if not questions:
            return None
        groups = [_Group(self._fragments)]
        for question in questions:
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

    def _column(self, leaf: Leaf) -> Column | None:
        """Return the indexed column that a condition is about."""
        column = column_of_leaf(leaf)
        if isinstance(leaf, SqlLeaf) and len(set(leaf.expression.paths)) == 1:
            path = leaf.expression.paths[0]
            dtype = type_at(expression_schema(self._snapshot.manifest.schema), path)
            column = None if dtype is None else Column(path=path, dtype=dtype)
        return column if column is not None and self._sources.of(column) else None

    def _answers(self, question: Question) -> Iterator[tuple[BitMap, Answer]]:
        """Yield the answers to a question, each with the fragments that it is about."""
        left = BitMap(self._fragments)
        for source in self._sources.of(question.column):
            covered = left & source.coverage.fragments
            answer = addresses.answer(self._snapshot, source, question) if covered else None
            if answer is not None:
                self._log.append(_logged(source, question, answer))
                left -= covered
                yield covered, answer

    def _rows_of(self, fragment: int) -> int:
        found = self._sources.fragments.by_id()[FragmentId(fragment)]
        return physical_rows(self._snapshot.files, self._snapshot.manifest_at, found)


def _logged(source: Source, question: Question, answer: Answer) -> AskedIndex:
    true = answer.maybe_true
    return AskedIndex(
        index=source.index,
        kind=source.kind.name,
        condition=question.condition,
        is_exact=answer.is_exact,
        rows=len(true.ids),
        are_excluded=true.is_inverted,
    )
