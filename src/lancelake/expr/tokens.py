"""Tokenizer of SQL text for quoting and names."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from lancelake.errors import InvalidExpressionError


class TokenKind(Enum):
    """Kinds of tokens."""

    SPACE = "space"
    COMMENT = "comment"
    STRING = "string"
    QUOTED_STRING = "quoted_string"
    QUOTED_NAME = "quoted_name"
    NUMBER = "number"
    NAME = "name"
    SYMBOL = "symbol"


BLANK = (TokenKind.SPACE, TokenKind.COMMENT)
"""Whitespace and comments."""


class Token(NamedTuple):
    """A piece of SQL text."""

    kind: TokenKind
    text: str

    @property
    def value(self) -> str:
        """The text without its quotes."""
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


_PATTERNS = (
    (TokenKind.SPACE, r"\s+"),
    (TokenKind.COMMENT, r"--[^\n]*|/\*.*?\*/"),
    (TokenKind.STRING, r"'(?:[^']|'')*'"),
    (TokenKind.QUOTED_STRING, r'"(?:[^"]|"")*"'),
    (TokenKind.QUOTED_NAME, r"`(?:[^`]|``)*`"),
    (TokenKind.NUMBER, r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"),
    (TokenKind.NAME, r"[^\W\d][\w$]*"),
    (TokenKind.SYMBOL, r"::|[^\s\w'\"`]"),
)
_KINDS = {kind.value: kind for kind in TokenKind}
_SHOWN = 200
_TOKEN = re.compile(
    "|".join(f"(?P<{kind.value}>{pattern})" for kind, pattern in _PATTERNS), re.DOTALL
)


def tokenize(sql: str) -> list[Token]:
    """Split SQL text into tokens; joined, they are the same text."""
    tokens: list[Token] = []
    position = 0
    for match in _TOKEN.finditer(sql):
        if match.start() != position:
            break
        tokens.append(Token(_KINDS[match.lastgroup or ""], match.group()))
        position = match.end()
    if position < len(sql):
        problem = f"expression {shown(sql)!r} cannot be parsed from position {position}"
        raise InvalidExpressionError(problem, text=shown(sql), position=position)
    return tokens


def shown(text: str) -> str:
    """Shorten a long text for messages."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
