"""Strategies for row histories of tables with stable row ids."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.support import row_lineage as steps

_COUNT = st.integers(1, 5)
_SEED = st.integers(0, 40)
_EVERY = st.integers(1, 4)
_REST = st.integers(0, 3)

_FIRST = st.builds(steps.Append, count=st.integers(1, 8), seed=_SEED)
_ROW_STEPS = st.one_of(
    st.builds(steps.Append, count=_COUNT, seed=_SEED),
    st.builds(steps.Delete, every=_EVERY, rest=_REST),
    st.builds(steps.Update, every=_EVERY, rest=_REST, value=st.integers(100, 120)),
    st.builds(steps.Upsert, every=_EVERY, rest=_REST, count=st.integers(0, 2), seed=_SEED),
)
_OTHER_STEPS = st.one_of(
    st.builds(steps.UpdatePart, every=_EVERY, rest=_REST, seed=_SEED),
    st.just(steps.Widen()),
    st.just(steps.Compact()),
    st.builds(steps.Overwrite, count=_COUNT, seed=_SEED),
    st.builds(steps.Restore, share=st.floats(0, 1)),
    st.builds(steps.AddColumn, name=st.sampled_from(["c", "d"])),
    st.builds(steps.AddEmptyColumn, name=st.sampled_from(["c", "d"])),
    st.builds(steps.DropColumn, name=st.sampled_from(["c", "d", "s"])),
)
_STEPS: st.SearchStrategy[steps.Step] = st.one_of(_ROW_STEPS, _ROW_STEPS, _OTHER_STEPS)

Taken = tuple[bool, steps.Step]
"""A step, and whether this library takes it or official Lance."""


@st.composite
def pasts(draw: st.DrawFn) -> list[Taken]:
    """Draw the creation of a table and some steps after it."""
    first: Taken = (draw(st.booleans()), draw(_FIRST))
    return [first, *draw(st.lists(st.tuples(st.booleans(), _STEPS), min_size=1, max_size=7))]


PASTS = pasts()
