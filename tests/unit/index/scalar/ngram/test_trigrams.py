"""Trigrams of texts are those that official releases find, counted one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.index.scalar import ngram
from lancelake.index.scalar.ngram import (
    BEFORE_14,
    IN_ALL,
    SINCE_14,
    folding,
    required_by,
    trigrams_of,
)

LETTERS = "aBc09 -_éÉßĸªŦſİ㎒ℂⅤ⒈ᴀ日\U0001d400\U0001f600"
texts = st.text(alphabet=LETTERS, max_size=8)


def token(three: str) -> int:
    def digit(letter: str) -> int:
        is_number = letter.isdecimal()
        place = ord(letter) - 48 if is_number else ord(letter) - 97 + 10
        return (place + 1) & 0xFF

    first, second, third = map(digit, three)
    return first * 37 * 37 + second * 37 + third


def slowly(text: str, *tables: str) -> set[int]:
    known = folding(*tables)
    small = "".join(c.lower() if c.isascii() else known.get(ord(c), "_") for c in text)
    threes = [small[i : i + 3] for i in range(len(small) - 2)]
    return {token(three) for three in threes if three.isascii() and three.isalnum()}


def pairs(column: pa.Array) -> set[tuple[int, int]]:
    found = [(t, r) for part in trigrams_of(column) for t, r in zip(*part, strict=True)]
    return {(int(t), int(r)) for t, r in found}


@given(st.lists(st.one_of(st.none(), texts), max_size=6), st.integers(0, 3))
def test_trigrams_of_both_foldings_are_found(values: list[str | None], start: int) -> None:
    column = pa.array(values, pa.string()).slice(start)
    expected = {
        (number, row)
        for row, value in enumerate(values[start:])
        for tables in ((IN_ALL, BEFORE_14), (IN_ALL, SINCE_14))
        for number in slowly(value or "", *tables)
    }
    assert pairs(column) == expected


@given(texts, texts, texts)
def test_a_part_requires_nothing_that_the_text_lacks(before: str, part: str, after: str) -> None:
    whole = before + part + after
    for tables in ((IN_ALL, BEFORE_14), (IN_ALL, SINCE_14)):
        assert set(required_by(part)) <= slowly(whole, *tables)


def test_a_part_requires_what_all_releases_find() -> None:
    assert set(required_by("Éclair ĸ")) == {token(t) for t in ("ecl", "cla", "lai", "air")}


@pytest.mark.parametrize("text", ["", "ab", "a b", "日本語", "ab-cd"])
def test_short_parts_require_nothing(text: str) -> None:
    assert required_by(text) == []


def test_texts_of_many_slices_keep_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram, "_SLICE_BYTES", 4)
    column = pa.array(["abc", "longer than a slice", None, "", "xyz", "é12"], pa.large_string())
    found = pairs(column)
    assert {(token("abc"), 0), (token("xyz"), 4), (token("e12"), 5)} <= found
    assert {row for _, row in found} == {0, 1, 4, 5}
