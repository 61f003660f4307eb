"""Counts with their nouns."""

from __future__ import annotations

import pytest

from lancelake.format.words import plural


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (12_345, "12,345 files")]
)
def test_the_noun_follows_the_number(count: int, text: str) -> None:
    assert plural(count, "file") == text


def test_an_irregular_noun_is_given() -> None:
    assert plural(2, "index", "indices") == "2 indices"
