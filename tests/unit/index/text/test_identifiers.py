"""Words of identifiers."""

from __future__ import annotations

import pytest

from lancelake.index.text.analyzer import identifier_words


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("foo", ["foo"]),
        ("getUserName", ["get", "User", "Name"]),
        ("parseHTTPResponse2", ["parse", "HTTP", "Response", "2"]),
        ("__init__", ["init"]),
        ("SNAKE_case", ["SNAKE", "case"]),
        ("i18n", ["i", "18", "n"]),
        ("URLs", ["UR", "Ls"]),
        ("fooÉbar", ["foo", "Ébar"]),
        ("___", []),
    ],
)
def test_words_of_identifiers(identifier: str, words: list[str]) -> None:
    assert identifier_words(identifier, at_numbers=True) == words


def test_words_continue_at_numbers_by_default() -> None:
    assert identifier_words("Server2XML_v6Addr", at_numbers=False) == ["Server2XML", "v6Addr"]
