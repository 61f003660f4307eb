"""Which columns do Spark's expressions name, and which pairs of them form the key?"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql import Column

from lancelake.errors import LanceTableError
from lancelake.expr.tokens import Token, TokenKind, tokenize

_SHOWN = re.compile(r"^Column<'(.*)'>$", re.DOTALL)


def text_of(expression: Column | str) -> str:
    """Return an expression as text."""
    if isinstance(expression, str):
        return expression
    shown = str(expression)
    found = _SHOWN.match(shown)
    return found[1] if found else shown


def columns_named(
    expressions: Iterable[Column | str], columns: Iterable[str]
) -> tuple[str, ...] | None:
    """Return the columns that expressions may name; None when that cannot be told."""
    by_lower = {name.lower(): name for name in columns}
    found: dict[str, None] = {}
    for expression in expressions:
        text = text_of(expression)
        try:
            tokens = tokenize(text)
        except LanceTableError:
            return None
        for token in tokens:
            name = by_lower.get(_name(token).lower())
            if name is not None:
                found[name] = None
    return tuple(found)


def key_pairs(condition: Column | str, target: str, source: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs (target column, source column) that a condition sets equal.

    Other parts of the condition are passed over; with an OR anywhere nothing is certain.
    """
    try:
        tokens = [
            token
            for token in tokenize(text_of(condition))
            if token.kind not in (TokenKind.SPACE, TokenKind.COMMENT)
            and token.text not in ("(", ")")
        ]
    except LanceTableError:
        return ()
    if any(token.text.lower() in ("or", "not") for token in tokens):
        return ()
    found = (_pair(part, target.lower(), source.lower()) for part in _split(tokens))
    return tuple(pair for pair in found if pair is not None)


def _split(tokens: list[Token]) -> Iterable[list[Token]]:
    part: list[Token] = []
    for token in tokens:
        if token.text.lower() == "and":
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _pair(part: list[Token], target: str, source: str) -> tuple[str, str] | None:
    shape = [_name(token) for token in part]
    if "=" not in shape:
        return None
    position = shape.index("=")
    # Spark also writes == for equality.
    rest = shape[position + 1 :]
    left, right = _reference(shape[:position]), _reference(rest[rest[:1] == ["="] :])
    if left is None or right is None:
        return None
    sides = {left[0].lower(): left[1], right[0].lower(): right[1]}
    if set(sides) != {target, source}:
        return None
    return sides[target], sides[source]


def _reference(words: list[str]) -> tuple[str, str] | None:
    return (words[0], words[2]) if len(words) == 3 and words[1] == "." else None  # noqa: PLR2004


def _name(token: Token) -> str:
    return token.value if token.kind is TokenKind.QUOTED_NAME else token.text
