"""Terms of full text queries."""

from __future__ import annotations

import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError


def test_positions_count_from_the_first_term() -> None:
    found = lance.tokenize("the Cats and Dogs")
    assert [(token.text, token.position) for token in found] == [("cat", 0), ("dog", 2)]


def test_options_are_those_of_an_index() -> None:
    found = lance.tokenize("the Cats", stem=False, remove_stop_words=False, max_token_length=None)
    assert [token.text for token in found] == ["the", "cats"]


def test_an_option_of_another_tokenizer_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="split_identifiers"):
        lance.tokenize("fooBar", split_identifiers=True)
