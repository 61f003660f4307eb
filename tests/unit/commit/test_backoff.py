from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.commit.candidate import SlotBackoff, detached_delay_s, redo_delay_s

CHANCE = st.floats(0, 1, exclude_max=True)


@given(wait=st.integers(0, 10), chance=CHANCE)
def test_a_wait_is_a_whole_number_of_slots_below_the_limit(wait: int, chance: float) -> None:
    slots = SlotBackoff(attempt_s=1.0).delay_s(wait, chance) / 1.1
    assert slots == pytest.approx(round(slots))
    assert 0 <= round(slots) < 2 ** (wait + 2)


@given(wait=st.integers(0, 10_000), chance=CHANCE)
def test_a_wait_is_never_much_longer_than_an_attempt(wait: int, chance: float) -> None:
    assert SlotBackoff(attempt_s=1.0).delay_s(wait, chance) < 36


@given(wait=st.integers(8, 10_000), chance=CHANCE)
def test_a_writer_that_lost_often_does_not_wait(wait: int, chance: float) -> None:
    assert SlotBackoff(attempt_s=1.0).delay_s(wait, chance) == 0


@given(attempt_s=st.floats(0, 1e6), most_s=st.floats(-1e6, 1e6), chance=st.floats(0, 1))
def test_work_is_done_again_after_less_time_than_it_took_and_than_is_left(
    attempt_s: float, most_s: float, chance: float
) -> None:
    delay_s = redo_delay_s(attempt_s, chance, most_s=most_s)
    assert 0 <= delay_s <= attempt_s
    assert delay_s <= max(0, most_s)


@given(wait=st.integers(0, 10_000), chance=CHANCE)
def test_a_detached_wait_is_never_long(wait: int, chance: float) -> None:
    assert 0 <= detached_delay_s(wait, chance) <= 5


def test_detached_waits_double() -> None:
    assert [detached_delay_s(wait, 0.5) for wait in range(3)] == [0.05, 0.1, 0.2]
