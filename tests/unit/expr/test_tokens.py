"""SQL text is tokenized without losing characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import InvalidExpressionError
from lancelake.expr.structure import Token, TokenKind, tokenize

PIECES = st.sampled_from(
    [
        *("a", "Größe", "日本", "_x", "a$b", "AND", "1", "2.5", "1e-3", ".", "::", "=", "<", "!"),
        *("(", ")", "[", "]", ",", " ", "\n\t", "-- note\n", "/* note */", "'text'", "'it''s'"),
        *('"text"', '"a""b"', "`name`", "`a``b`", "`a.b`", "''", "'--'", "'`'", "`'`"),
    ]
)


@given(st.lists(PIECES).map("".join))
def test_tokens_join_to_the_text(sql: str) -> None:
    assert "".join(token.text for token in tokenize(sql)) == sql


@given(st.text())
def test_any_text_is_cut_or_refused(sql: str) -> None:
    try:
        tokens = tokenize(sql)
    except InvalidExpressionError:
        return
    assert "".join(token.text for token in tokens) == sql


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("abc", TokenKind.NAME),
        ("größe", TokenKind.NAME),
        ("_rowid", TokenKind.NAME),
        ("a$1", TokenKind.NAME),
        ("`a b`", TokenKind.QUOTED_NAME),
        ('"a b"', TokenKind.QUOTED_STRING),
        ("'a b'", TokenKind.STRING),
        ("12.5e+3", TokenKind.NUMBER),
        ("::", TokenKind.SYMBOL),
        ("-- all of this", TokenKind.COMMENT),
        ("/* over\nlines */", TokenKind.COMMENT),
        (" \n\t", TokenKind.SPACE),
    ],
)
def test_one_token_has_its_kind(sql: str, kind: TokenKind) -> None:
    assert tokenize(sql) == [Token(kind, sql)]


@pytest.mark.parametrize(
    ("sql", "value"), [("'it''s'", "it's"), ('"a""b"', 'a"b'), ("`a``b`", "a`b"), ("''", "")]
)
def test_value_has_no_quotes(sql: str, value: str) -> None:
    (token,) = tokenize(sql)
    assert token.value == value


@pytest.mark.parametrize(("sql", "position"), [("a = 'open", 4), ('a = "open', 4), ("`open", 0)])
def test_open_quote_is_refused_at_its_place(sql: str, position: int) -> None:
    with pytest.raises(InvalidExpressionError) as caught:
        tokenize(sql)
    assert caught.value.facts["position"] == position
