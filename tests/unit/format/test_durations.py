from __future__ import annotations

import pytest

from lancelake.format.durations import duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (20, "20s"),
        (90_061, "1day 1h 1m 1s"),
        (14 * 86_400, "14days"),
        (400 * 86_400 + 3_661, "1year 1month 4days 8h 27m 25s"),
        (2 * 31_557_600 + 2 * 2_630_016, "2years 2months"),
    ],
)
def test_a_duration_is_written_from_its_largest_unit_down(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text
