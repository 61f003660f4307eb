"""SQL text as tokens, as far as quoting and names are concerned."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from lancelake.errors import InvalidExpressionError


class TokenKind(Enum):
    """What a piece of SQL text is."""

    SPACE = "space"
    COMMENT = "comment"
    STRING = "string"
    QUOTED_STRING = "quoted_string"
    QUOTED_NAME = "quoted_name"
    NUMBER = "number"
    NAME = "name"
    SYMBOL = "symbol"


@dataclass(frozen=True, slots=True)
class Token:
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
_TOKEN = re.compile(
    "|".join(f"(?P<{kind.value}>{pattern})" for kind, pattern in _PATTERNS), re.DOTALL
)


def tokenize(sql: str) -> list[Token]:
    """Cut SQL text into tokens that join to the same text."""
    tokens: list[Token] = []
    position = 0
    while position < len(sql):
        match = _TOKEN.match(sql, position)
        if match is None or match.lastgroup is None:
            problem = f"expression {sql!r} cannot be read from position {position}"
            raise InvalidExpressionError(problem, text=sql, position=position)
        tokens.append(Token(TokenKind(match.lastgroup), match.group()))
        position = match.end()
    return tokens
