"""Answers joined by AND, OR and NOT bound the truth of three-valued logic from both sides."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lancelake.index.row_sets import Answer, RowIds, RowMask

ROWS = range(6)
Truth = tuple[bool | None, ...]


def ids(rows: list[int]) -> RowIds:
    return RowIds.of(np.array(rows, dtype=np.uint64))


def members(mask: RowMask) -> set[int]:
    return {row for row in ROWS if (row in mask.ids) != mask.is_inverted}


truths = st.tuples(*[st.sampled_from([True, False, None]) for _ in ROWS])


@st.composite
def answers(draw: st.DrawFn) -> tuple[Truth, Answer]:
    """Draw the truth of a condition, and an answer that bounds it."""
    truth = draw(truths)
    true = [row for row in ROWS if truth[row]]
    null = [row for row in ROWS if truth[row] is None]
    if draw(st.booleans()):
        return truth, Answer.exact(ids(true), ids(null))
    more = draw(st.sets(st.sampled_from(ROWS)))
    return truth, Answer.at_most(ids(sorted({*true, *more})))


def both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def opposite(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


joined = st.recursive(
    answers(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(
            lambda t: (tuple(map(both, t[0][0], t[1][0])), t[0][1] & t[1][1])
        ),
        st.tuples(inner, inner).map(
            lambda t: (
                tuple(
                    opposite(both(opposite(a), opposite(b)))
                    for a, b in zip(t[0][0], t[1][0], strict=True)
                ),
                t[0][1] | t[1][1],
            )
        ),
        inner.map(lambda t: (tuple(map(opposite, t[0])), ~t[1])),
    ),
    max_leaves=6,
)


@given(joined)
def test_bounds_hold(case: tuple[Truth, Answer]) -> None:
    truth, answer = case
    true = {row for row in ROWS if truth[row] is True}
    false = {row for row in ROWS if truth[row] is False}
    assert members(answer.surely_true) <= true <= members(answer.maybe_true)
    assert members(answer.surely_false) <= false <= members(answer.maybe_false)
    if answer.is_exact:
        assert members(answer.maybe_true) == true


@given(
    truth=truths,
    named=st.lists(st.sampled_from([True, False, None]), min_size=6, max_size=6),
    doubted=st.sets(st.sampled_from(ROWS)),
    is_opposite=st.booleans(),
)
def test_bounds_hold_for_rows_that_are_named_by_old_values_too(
    truth: Truth, named: list[bool | None], doubted: set[int], is_opposite: bool
) -> None:
    def rows_of(value: bool | None) -> RowIds:
        old = {row for row in doubted if named[row] is value}
        return ids([row for row in ROWS if truth[row] is value or row in old])

    answer = Answer.exact(rows_of(True), rows_of(None)).doubting(ids(sorted(doubted)))
    if is_opposite:
        answer, truth = ~answer, tuple(map(opposite, truth))
    true = {row for row in ROWS if truth[row] is True}
    false = {row for row in ROWS if truth[row] is False}
    assert members(answer.surely_true) <= true <= members(answer.maybe_true)
    assert members(answer.surely_false) <= false <= members(answer.maybe_false)
    assert answer.is_exact or doubted
