"""Text of numbers, sizes, times and special characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.cli import phrases

NOW = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (200 * 1024, "200 KiB"),
        (5 * 1024**3, "5.0 GiB"),
        (1024**6, "1024 PiB"),
    ],
)
def test_size(count: int, text: str) -> None:
    assert phrases.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (1, "1 second ago"),
        (59, "59 seconds ago"),
        (3600, "1 hour ago"),
        (86400 * 45, "1 month ago"),
        (86400 * 800, "2 years ago"),
        (-7200, "in 2 hours"),
    ],
)
def test_age(seconds: int, text: str) -> None:
    assert phrases.age(NOW - seconds * SECOND, NOW) == text


def test_age_in_short() -> None:
    assert phrases.age(NOW - 180 * SECOND, NOW, is_short=True) == "3 min ago"


def test_plural() -> None:
    assert (phrases.plural(1, "file"), phrases.plural(1200, "file")) == ("1 file", "1,200 files")


def test_an_unknown_number_is_a_question_mark() -> None:
    assert (phrases.number(None), phrases.number(1234)) == ("?", "1,234")


@given(st.text())
def test_printable_text_never_steers_the_terminal(text: str) -> None:
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in phrases.printable(text))


def test_printable_keeps_ordinary_text() -> None:
    assert phrases.printable("Grüße, 世界 🙂") == "Grüße, 世界 🙂"


@given(st.text(), st.integers(1, 50))
def test_shortened_text_is_short(text: str, most: int) -> None:
    assert len(phrases.shorten(text, most)) <= most
