from __future__ import annotations

import pytest

from lancelake.memwal.region import LONGEST_S, Elapsed
from tests.support.manual_clock import ManualClock


@pytest.mark.parametrize(
    ("wall_s", "steady_s", "is_long"),
    [
        (1.0, 1.0, False),
        (LONGEST_S + 1, 1.0, True),
        (1.0, LONGEST_S + 1, True),
        (-1.0, 1.0, True),
    ],
)
def test_the_later_clock_decides(wall_s: float, steady_s: float, *, is_long: bool) -> None:
    clock = ManualClock()
    began = Elapsed(clock)
    clock.wall_s += wall_s
    clock.steady_s += steady_s
    assert began.is_long() is is_long


def test_a_caller_may_choose_what_is_long() -> None:
    clock = ManualClock()
    began = Elapsed(clock)
    clock.pass_time(2.0)
    assert began.is_long(1.0)
    assert not began.is_long(3.0)
