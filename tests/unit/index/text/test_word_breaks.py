"""Words by the rules of Unicode."""

from __future__ import annotations

import pytest

from lancelake.errors import UnsupportedError
from lancelake.index.text.analyzer import words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("Hello, world!", ["Hello", "world"]),
        ("a.b a.1 1.a 1.2,3 1..2 .5 5.", ["a.b", "a", "1", "1", "a", "1.2,3", "1", "2", "5", "5"]),
        ("don't rock'n'roll 'x'", ["don't", "rock'n'roll", "x"]),
        ("___ _a 1_2.3 a_.b", ["_a", "1_2.3", "a_", "b"]),
        ("a:b x@y.com", ["a", "b", "x", "y.com"]),
        ("naïve “Ελλάδα” — мир…", ["naïve", "Ελλάδα", "мир"]),
    ],
)
def test_words_of_known_alphabets(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize("text", ["日本語", "a \u0e01", "x²", "e\u0301", "don\u2019t", "😀"])
def test_texts_with_other_characters_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedError, match="ICU"):
        words(text)
