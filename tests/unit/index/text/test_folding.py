"""Characters become ASCII ones as in release 14."""

from __future__ import annotations

import pytest

from lancelake.index.text.analyzer import fold


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("plain", "plain"),
        ("naïveté", "naivete"),
        ("straße", "strasse"),
        ("Łódź", "Lodz"),
        ("Ǿ", "O"),
        ("ﬁn½ª", "fin12a"),
        ("ἀλφα", "ἀλφα"),
        ("ƒ«日本»", "ƒ«日本»"),
        ("e\u0301", "e\u0301"),
    ],
)
def test_a_character_becomes_the_ascii_part_of_its_decomposition(word: str, expected: str) -> None:
    assert fold(word) == expected
