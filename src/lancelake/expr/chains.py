"""Boolean structure of SQL text: AND, OR, NOT and parentheses around conditions.

For a chain of thousands of conditions, a SQL parser builds a deep tree in quadratic time and may
overflow the stack. So the structure is parsed here, and the SQL parser gets single conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from lancelake.errors import InvalidExpressionError
from lancelake.expr.tokens import BLANK, Token, TokenKind, shown

MAX_CHAIN = 2000
"""Maximum number of chained operators in one condition or value."""
MAX_DEPTH = 100
"""Maximum nesting of parentheses around conditions."""
MAX_REREADS = 16
"""Maximum nesting of keywords whose content the SQL parser reads twice if it is wrong."""
_MAX_TOKENS = 3 * MAX_CHAIN
_PREFIXES = ("NOT", "INTERVAL")
_EXAMPLES = ("CASE", "CAST")
_REREAD = frozenset(
    {
        *("CAST", "TRY_CAST", "SAFE_CAST", "CONVERT", "TRY_CONVERT", "ARRAY", "POSITION"),
        *("SUBSTRING", "SUBSTR", "OVERLAY", "FLOOR", "CEIL"),
        *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"),
    }
)
# Functions that parse a type from a text.
_BY_TYPE = ("ARROW_CAST", "ARROW_TRY_CAST")
_OPENING, _CLOSING = ("(", "["), (")", "]")
_CHAINING = frozenset("+-*/%|&^=<>!~@#?.:") | {"::"}
_CHAINING_WORDS = ("AND", "OR", "NOT", "LIKE", "ILIKE", "IS")


@dataclass(frozen=True, slots=True)
class Part:
    """A condition without a structure: a range of tokens."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Negation:
    """NOT before a condition."""

    part: Structure


@dataclass(frozen=True, slots=True)
class Chain:
    """Conditions joined by one word, AND or OR."""

    word: str
    parts: tuple[Structure, ...]


Structure = Part | Negation | Chain


def structure(tokens: Sequence[Token], text: str, is_column: Callable[[int], bool]) -> Structure:
    """Parse the structure of a condition; `is_column` recognizes keywords that are columns."""
    reader = _Reader(tokens, text, is_column)
    whole = Part(0, len(tokens))
    if reader.is_unbalanced:
        return whole
    found = reader.either(0)
    return found if reader.is_at_end else whole


def check_chains(tokens: Sequence[Token], text: str) -> None:
    """Raise for an expression that would overflow the SQL parser's stack or take it for ever."""
    limits = _Limits(text)
    for token in tokens:
        if token.kind not in BLANK:
            limits.read(token)


class _Limits:
    """Lengths of chains, and nesting of keywords, up to a token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._levels = [_Level(opened_by="", rereads=0)]
        self._before = ""
        self._prefixes = 0
        self._parses_types = False

    def read(self, token: Token) -> None:
        """Add a token."""
        level, word = self._levels[-1], token.text
        if token.kind is TokenKind.NAME:
            word = word.upper()
        level.tokens += 1
        if word in _OPENING or word == "CASE":
            self._open(word)
        elif self._closes(word):
            self._levels.pop()
        elif word == ",":
            level.tokens = level.operators = 0
        elif word in _CHAINING or word in _CHAINING_WORDS:
            level.operators += 1
        elif word in _BY_TYPE:
            self._parses_types = True
        elif self._parses_types and token.kind is TokenKind.STRING and word.count("(") > MAX_DEPTH:
            self._refuse(f"nests types more than {MAX_DEPTH} deep")
        if level.operators > MAX_CHAIN or level.tokens > _MAX_TOKENS:
            self._refuse(f"chains more than {MAX_CHAIN} operators")
        self._prefixes = self._prefixes + 1 if word in _PREFIXES else 0
        self._before = word
        if self._levels[-1].rereads + self._prefixes > MAX_REREADS:
            self._refuse(f"nests {' and '.join(_EXAMPLES)} more than {MAX_REREADS} deep")

    def _open(self, word: str) -> None:
        is_reread = word == "CASE" or self._before in _REREAD
        rereads = self._levels[-1].rereads + self._prefixes + is_reread
        self._levels.append(_Level(opened_by=word, rereads=rereads))

    def _closes(self, word: str) -> bool:
        """Whether a token ends the innermost level."""
        opened_by = self._levels[-1].opened_by
        return word == "END" if opened_by == "CASE" else bool(opened_by) and word in _CLOSING

    def _refuse(self, problem: str) -> NoReturn:
        text = shown(self._text)
        raise InvalidExpressionError(f"expression {text!r} {problem}", text=text)


@dataclass(slots=True)
class _Level:
    """What was read inside of a parenthesis, a bracket or a CASE, since the last comma."""

    opened_by: str
    rereads: int
    tokens: int = 0
    operators: int = 0


class _Reader:
    def __init__(
        self, tokens: Sequence[Token], text: str, is_column: Callable[[int], bool]
    ) -> None:
        self._tokens = tokens
        self._text = text
        self._is_column = is_column
        self._places = [i for i, t in enumerate(tokens) if t.kind not in BLANK]
        self._at = 0
        self._closing = self._matched()

    @property
    def is_unbalanced(self) -> bool:
        """Whether parentheses do not match."""
        return self._closing is None

    @property
    def is_at_end(self) -> bool:
        """Whether all tokens were read."""
        return self._at >= len(self._places)

    def either(self, depth: int) -> Structure:
        """Read conditions joined by OR."""
        return self._chain("OR", lambda: self._both(depth))

    def _both(self, depth: int) -> Structure:
        return self._chain("AND", lambda: self._negation(depth))

    def _chain(self, word: str, read: Callable[[], Structure]) -> Structure:
        parts = [read()]
        while not self.is_at_end and self._is_operator(word):
            self._at += 1
            parts.append(read())
        return parts[0] if len(parts) == 1 else Chain(word, tuple(parts))

    def _negation(self, depth: int) -> Structure:
        is_negated = False
        while not self.is_at_end and self._is_operator("NOT"):
            is_negated = not is_negated
            self._at += 1
        part = self._group(depth)
        return Negation(part) if is_negated else part

    def _group(self, depth: int) -> Structure:
        """Read a condition in parentheses, or one without a structure."""
        closing = (self._closing or {}).get(self._at)
        if closing is None or self._token(self._at).text != "(" or not self._ends_at(closing + 1):
            return self._part()
        if depth >= MAX_DEPTH:
            problem = f"the expression nests conditions more than {MAX_DEPTH} deep"
            raise InvalidExpressionError(problem, text=shown(self._text))
        start = self._at
        self._at += 1
        inner = self.either(depth + 1)
        if self._at != closing:
            self._at = start
            return self._part()
        self._at = closing + 1
        return inner

    def _part(self) -> Part:
        """Read up to the next AND or OR, or the end of the parentheses around."""
        first = self._at
        cases, between = 0, 0
        while not self._is_end_of_part(first, cases, between):
            token = self._token(self._at)
            if _is_word(token, ("CASE", "END", "BETWEEN", "AND")) and not self._names_column():
                word = token.text.upper()
                cases += (word == "CASE") - (word == "END" and cases > 0)
                between += (word == "BETWEEN") - (word == "AND" and between > 0)
            inside = (self._closing or {}).get(self._at)
            self._at = self._at + 1 if inside is None else inside + 1
        stop = self._places[self._at] if not self.is_at_end else len(self._tokens)
        start = self._places[first] if first < len(self._places) else len(self._tokens)
        return Part(start, stop)

    def _is_end_of_part(self, first: int, cases: int, between: int) -> bool:
        if self.is_at_end or self._token(self._at).text in _CLOSING:
            return True
        if self._at == first or cases:
            return False
        return self._is_operator("OR") or (self._is_operator("AND") and not between)

    def _ends_at(self, place: int) -> bool:
        """Whether a condition can end before this position."""
        if place >= len(self._places) or self._token(place).text == ")":
            return True
        return _is_word(self._token(place), ("AND", "OR"))

    def _is_operator(self, word: str) -> bool:
        return _is_word(self._token(self._at), (word,)) and not self._names_column()

    def _names_column(self) -> bool:
        return self._is_column(self._places[self._at])

    def _token(self, place: int) -> Token:
        return self._tokens[self._places[place]]

    def _matched(self) -> dict[int, int] | None:
        """Find the closing parenthesis of each opening one."""
        found: dict[int, int] = {}
        opened: list[int] = []
        for place, position in enumerate(self._places):
            text = self._tokens[position].text
            if text in _OPENING:
                opened.append(place)
            elif text in _CLOSING:
                if not opened:
                    return None
                found[opened.pop()] = place
        return None if opened else found


def _is_word(token: Token, words: Sequence[str]) -> bool:
    return token.kind is TokenKind.NAME and token.text.upper() in words
