"""A condition as questions to indices, joined by AND, OR and NOT.

Parts that no index can help with are left out before anything is asked: of an OR, all parts must
be known to bound the rows for which it is true; of an AND, one is enough. For the rows for which
they are false it is the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lancelake.expr.condition import (
    And,
    Column,
    ColumnComparison,
    Condition,
    Constant,
    Leaf,
    ListMatch,
    Not,
    Or,
    PlannedLeaf,
    SqlLeaf,
    all_of,
)
from lancelake.index.key_range import KeyRange, range_of
from lancelake.index.order import has_order


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """Conditions on one column that must all hold; `wanted` is the range that they leave."""

    column: Column
    leaves: tuple[Leaf, ...]
    wanted: KeyRange | None = None

    @property
    def condition(self) -> Condition:
        """The question as one condition."""
        return all_of(self.leaves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A condition with the same truth for every row."""

    truth: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unasked:
    """A condition that no index is asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opposite:
    """NOT before questions."""

    part: Questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Questions joined by AND or by OR."""

    parts: tuple[Questions, ...]
    is_and: bool


Questions = Question | Known | Unasked | Opposite | Joined
UNASKED = Unasked()

ColumnOf = Callable[[Leaf], Column | None]
"""The indexed column that a condition is about; None if there is none."""


def questions_of(condition: Condition, column_of: ColumnOf) -> Questions:
    """Return the questions that bound the rows for which a condition is true."""
    return _Reader(column_of).read(condition, wants_true=True)


def asked(questions: Questions) -> list[Question]:
    """Return the questions to be asked, in the order in which they are stated."""
    match questions:
        case Question():
            return [questions]
        case Opposite():
            return asked(questions.part)
        case Joined():
            return [each for part in questions.parts for each in asked(part)]
        case _:
            return []


@dataclass(frozen=True, slots=True)
class _Reader:
    column_of: ColumnOf

    def read(self, condition: Condition, *, wants_true: bool) -> Questions:
        match condition:
            case Not():
                inner = self.read(condition.part, wants_true=not wants_true)
                return UNASKED if inner is UNASKED else Opposite(part=inner)
            case And() | Or():
                return self._joined(condition, wants_true=wants_true)
            case Constant():
                return Known(truth=condition.truth)
            case _:
                column = self.column_of(condition)
                return UNASKED if column is None else _question(column, [condition])

    def _joined(self, condition: And | Or, *, wants_true: bool) -> Questions:
        is_and = isinstance(condition, And)
        leaves, others = self._leaves(condition.parts)
        read: list[Questions] = [self.read(part, wants_true=wants_true) for part in others]
        for column, some in leaves:
            read += _ranges(column, some) if is_and else [_question(column, [x]) for x in some]
        is_unknown = [part is UNASKED for part in read]
        needs_all = is_and != wants_true
        if all(is_unknown) or (needs_all and any(is_unknown)):
            return UNASKED
        return read[0] if len(read) == 1 else Joined(parts=tuple(read), is_and=is_and)

    def _leaves(
        self, parts: Sequence[Condition]
    ) -> tuple[list[tuple[Column, list[Leaf]]], list[Condition]]:
        """Return the conditions on indexed columns by column, and all others."""
        by_column: dict[tuple[str, ...], tuple[Column, list[Leaf]]] = {}
        others: list[Condition] = []
        for part in parts:
            column = None
            if not isinstance(part, And | Or | Not | Constant):
                column = self.column_of(part)
            if column is None or isinstance(part, And | Or | Not):
                others.append(part)
            else:
                by_column.setdefault(column.path, (column, []))[1].append(part)
        return list(by_column.values()), others


def column_of_leaf(leaf: Leaf) -> Column | None:
    """Return the one column that a condition with a typed column is about."""
    is_other = isinstance(leaf, Constant | ColumnComparison | SqlLeaf | PlannedLeaf)
    return None if is_other else leaf.column  # type: ignore[union-attr]  # the others have one


def _ranges(column: Column, leaves: Sequence[Leaf]) -> list[Questions]:
    """Return one question for all ranges among conditions, and one for each of the others."""
    ranges: list[Leaf] = []
    rest: list[Leaf] = []
    for leaf in leaves:
        (rest if _range(column, leaf) is None else ranges).append(leaf)
    found: list[Questions] = [_question(column, [leaf]) for leaf in rest]
    return [_question(column, ranges), *found] if ranges else found


def _question(column: Column, leaves: Sequence[Leaf]) -> Question:
    wanted: KeyRange | None = None
    for leaf in leaves:
        part = _range(column, leaf)
        wanted = part if wanted is None or part is None else wanted & part
    return Question(column=column, leaves=tuple(leaves), wanted=wanted)


def _range(column: Column, leaf: Leaf) -> KeyRange | None:
    is_plain = not isinstance(leaf, ListMatch | SqlLeaf)
    return range_of(leaf) if is_plain and has_order(column.dtype) else None
