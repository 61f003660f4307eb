from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.format.words import duration_text, parse_duration


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("14days", 14 * 86_400),
        ("0s", 0),
        ("2weeks 1day", 15 * 86_400),
        ("1h 30m", 5_400),
        ("1h30min", 5_400),
        ("2 hours", 7_200),
        ("1M", 2_630_016),
        ("1y", 31_557_600),
        ("1500ms", 1.5),
    ],
)
def test_durations_are_understood(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "14", "days", "14 moons", "1h -3m", "1.5h", "-1s", "1h,"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|unit"):
        parse_duration(text)


def test_a_duration_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 999999999 days"):
        parse_duration("9999999999years")


@given(st.integers(0, 10**10))
def test_durations_come_back(seconds: int) -> None:
    assert parse_duration(duration_text(seconds)) == timedelta(seconds=seconds)
