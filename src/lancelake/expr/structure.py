"""Boolean structure of SQL text: AND, OR, NOT and parentheses around conditions.

For a chain of thousands of conditions, a SQL parser builds a deep tree in quadratic time and may
overflow the stack. So the structure is parsed here, and the SQL parser gets single conditions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import InvalidExpressionError

if TYPE_CHECKING:
    from datafusion import SessionContext


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
    if reader.is_unbalanced:
        return Part(0, len(tokens))
    return reader.condition()


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


class _Group:
    """What was read of a condition in parentheses, or of the whole."""

    def __init__(self) -> None:
        self.is_negated = False
        self._joined: list[Structure] = []
        self._alternatives: list[Structure] = []

    def add(self, part: Structure) -> None:
        """Add a condition, negated if NOT was read before it."""
        self._joined.append(Negation(part) if self.is_negated else part)
        self.is_negated = False

    def end_alternative(self) -> None:
        """Start the conditions after an OR."""
        self._alternatives.append(_chain("AND", self._joined))
        self._joined = []

    def condition(self) -> Structure:
        """Return all that was read."""
        self.end_alternative()
        return _chain("OR", self._alternatives)


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

    def condition(self) -> Structure:
        """Read a condition, with a list of what is open: Python's stack may be nearly used up."""
        groups = [_Group()]
        while True:
            while self._is_at("NOT"):
                groups[-1].is_negated = not groups[-1].is_negated
                self._at += 1
            if self._opens_group():
                self._open(groups)
                continue
            groups[-1].add(self._part())
            while len(groups) > 1 and self._token(self._at).text in _CLOSING:
                inner = groups.pop().condition()
                groups[-1].add(inner)
                self._at += 1
            if self._is_at_end():
                return groups[0].condition()
            if self._is_at("OR"):
                groups[-1].end_alternative()
            self._at += 1

    def _opens_group(self) -> bool:
        """Whether parentheses start here that hold a whole condition."""
        closing = (self._closing or {}).get(self._at)
        return closing is not None and self._token(self._at).text == "(" and self._ends_at(closing)

    def _open(self, groups: list[_Group]) -> None:
        if len(groups) > MAX_DEPTH:
            problem = f"the expression nests conditions more than {MAX_DEPTH} deep"
            raise InvalidExpressionError(problem, text=shown(self._text))
        groups.append(_Group())
        self._at += 1

    def _part(self) -> Part:
        """Read up to the next AND or OR, or the end of the parentheses around."""
        first = self._at
        cases, between = 0, 0
        while not self._is_end_of_part(first, cases, between):
            if self._is_keyword(self._at, ("CASE", "END", "BETWEEN", "AND")):
                word = self._token(self._at).text.upper()
                cases += (word == "CASE") - (word == "END" and cases > 0)
                between += (word == "BETWEEN") - (word == "AND" and between > 0)
            inside = (self._closing or {}).get(self._at)
            self._at = self._at + 1 if inside is None else inside + 1
        stop = self._places[self._at] if not self._is_at_end() else len(self._tokens)
        start = self._places[first] if first < len(self._places) else len(self._tokens)
        return Part(start, stop)

    def _is_end_of_part(self, first: int, cases: int, between: int) -> bool:
        if self._is_at_end() or self._token(self._at).text in _CLOSING:
            return True
        if self._at == first or cases:
            return False
        return self._is_at("OR") or (self._is_at("AND") and not between)

    def _ends_at(self, closing: int) -> bool:
        """Whether a condition can end with this parenthesis."""
        after = closing + 1
        if after >= len(self._places) or self._token(after).text == ")":
            return True
        return self._is_keyword(after, ("AND", "OR"))

    def _is_at_end(self) -> bool:
        return self._at >= len(self._places)

    def _is_at(self, word: str) -> bool:
        """Whether this operator is next."""
        return not self._is_at_end() and self._is_keyword(self._at, (word,))

    def _is_keyword(self, place: int, words: Sequence[str]) -> bool:
        token = self._token(place)
        is_word = token.kind is TokenKind.NAME and token.text.upper() in words
        return is_word and not self._is_column(self._places[place])

    def _token(self, place: int) -> Token:
        return self._tokens[self._places[place]]

    def _matched(self) -> dict[int, int] | None:
        """Find the closing parenthesis of each opening one."""
        closing: dict[int, int] = {}
        opened: list[int] = []
        for place, position in enumerate(self._places):
            text = self._tokens[position].text
            if text in _OPENING:
                opened.append(place)
            elif text in _CLOSING:
                if not opened:
                    return None
                closing[opened.pop()] = place
        return None if opened else closing


def _chain(word: str, parts: Sequence[Structure]) -> Structure:
    return parts[0] if len(parts) == 1 else Chain(word, tuple(parts))


MOST_BYTES = 512 << 20
_BATCH_ROWS = 8192
_MOST_NESTED = 4
_GUARD = "__lance_sized"
_TEXTS = ("repeat", "lpad", "rpad")
_LISTS = ("array_repeat", "list_repeat", "array_resize", "list_resize")
_CALLS = (*_TEXTS, *_LISTS)
_ITEM_BYTES = 16
_CHARACTER_BYTES = 4
_SERIES = ("range", "generate_series")
_SIZED = re.compile(rf"\b(?:{'|'.join((*_CALLS, *_SERIES))})\s*\(", re.IGNORECASE)
_TABLE_WORDS = ("FROM", "JOIN")
_WORDS = frozenset(
    {
        *("AND", "AS", "CASE", "ELSE", "END", "FALSE", "NOT", "NULL", "OR", "THEN", "TRUE", "WHEN"),
        *("BIGINT", "BYTE", "CHAR", "DOUBLE", "FLOAT", "INT", "INTEGER", "LONG", "SMALLINT"),
        *("STRING", "TINYINT", "UNSIGNED", "VARCHAR"),
    }
)
"""Words of constants."""
_NUMBERS = re.compile(r"\s*(-?\d+)\s*")


def with_size_limits(sql: str) -> str:
    """Let functions whose values can be too large check their arguments."""
    return _limited(tokenize(sql), sql, 0) if _SIZED.search(sql) else sql


def register_size_limits(context: SessionContext) -> None:
    """Register the check that `with_size_limits` adds."""
    from datafusion import udf  # noqa: PLC0415  # loads pandas, too

    types = [pa.int64(), pa.int64(), pa.int64(), pa.string()]
    context.register_udf(udf(_checked, types, pa.int64(), "immutable", _GUARD))


def _checked(count: pa.Array, unit: pa.Array, rows: pa.Array, name: pa.Array) -> pa.Array:
    """Return the counts; raise if the values of a batch would be too large."""
    counts, units = (pc.fill_null(a.cast(pa.float64()), 0) for a in (count, unit))
    total = pc.sum(pc.multiply(pc.max_element_wise(counts, 0.0), units)).as_py() or 0.0
    if total * (rows[0].as_py() if len(rows) else 1) > MOST_BYTES:
        raise _too_large(name[0].as_py())
    return count


def _too_large(name: str) -> InvalidExpressionError:
    limit = f"{MOST_BYTES >> 20} MiB for {_BATCH_ROWS:,} rows"
    return InvalidExpressionError(f"values of {name} would be too large; the limit is {limit}")


def _limited(tokens: Sequence[Token], text: str, depth: int) -> str:
    if depth > _MOST_NESTED:
        problem = f"functions that repeat values are nested more than {_MOST_NESTED} times"
        raise InvalidExpressionError(problem, text=text)
    out: list[str] = []
    at = 0
    while at < len(tokens):
        call = _call(tokens, at)
        if call is None:
            out.append(tokens[at].text)
            at += 1
            continue
        arguments, stop = call
        name = tokens[at].text.lower()
        if name in _SERIES:
            if not _is_table(tokens, at):
                _ensure_short(name, ["".join(t.text for t in each) for each in arguments])
            out.append(tokens[at].text)
            at += 1
            continue
        parts = [_limited(each, text, depth + 1) for each in arguments]
        parts[1] = _guarded(name, parts, arguments)
        out.append(f"{tokens[at].text}({','.join(parts)})")
        at = stop
    return "".join(out)


def _guarded(name: str, parts: Sequence[str], arguments: Sequence[Sequence[Token]]) -> str:
    unit = _unit(name, parts[0])
    asked = arguments[1:2] if unit.isdecimal() else arguments[:2]
    rows = _BATCH_ROWS if _is_constant(asked) else 1
    return f"{_GUARD}(CAST({parts[1]} AS BIGINT), {unit}, {rows}, '{name}')"


def _unit(name: str, repeated: str) -> str:
    """Return the size of what is repeated, as SQL; that of most items of lists is estimated."""
    inner = repeated.partition("(")[0].strip().lower()
    if name in ("lpad", "rpad"):
        return str(_CHARACTER_BYTES)
    if name in _TEXTS or inner in _TEXTS:
        return f"octet_length(CAST({repeated} AS VARCHAR))"
    if name in ("array_repeat", "list_repeat") and inner in _LISTS:
        return f"{_ITEM_BYTES} * CAST(cardinality({repeated}) AS BIGINT)"
    return str(_ITEM_BYTES)


def _is_constant(arguments: Sequence[Sequence[Token]]) -> bool:
    """Whether one value stands for all rows of a batch."""
    return not any(_names_column(each, i) for each in arguments for i in range(len(each)))


def _names_column(tokens: Sequence[Token], at: int) -> bool:
    token = tokens[at]
    if token.kind in (TokenKind.QUOTED_STRING, TokenKind.QUOTED_NAME):
        return True
    if token.kind is not TokenKind.NAME or token.text.upper() in _WORDS:
        return False
    following = _next(tokens, at + 1)
    return following is None or tokens[following].text != "("


def _call(tokens: Sequence[Token], at: int) -> tuple[list[list[Token]], int] | None:
    """Return the arguments of a sized call that starts at a token, and the token after it."""
    name = tokens[at].text.lower()
    if tokens[at].kind is not TokenKind.NAME or not (name in _CALLS or name in _SERIES):
        return None
    opening = _next(tokens, at + 1)
    if opening is None or tokens[opening].text != "(":
        return None
    arguments: list[list[Token]] = [[]]
    depth = 0
    for place in range(opening + 1, len(tokens)):
        token = tokens[place]
        if token.text == ")" and not depth:
            return (arguments, place + 1) if len(arguments) > 1 or name in _SERIES else None
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if token.text == "," and not depth:
            arguments.append([])
        else:
            arguments[-1].append(token)
    return None


def _is_table(tokens: Sequence[Token], at: int) -> bool:
    """Whether a call is a table, whose rows are made one batch after the other."""
    before = next((t for t in reversed(tokens[:at]) if t.kind not in BLANK), None)
    return before is not None and before.text.upper() in _TABLE_WORDS


def _ensure_short(name: str, arguments: Sequence[str]) -> None:
    """Refuse a list of numbers that is too long, if its bounds are numbers."""
    numbers = [_NUMBERS.fullmatch(each) for each in arguments]
    if None in numbers:
        return
    values = [int(matches[1]) for matches in numbers if matches is not None]
    first, last = (0, values[0]) if len(values) == 1 else values[:2]
    step = values[2] if len(values) > 2 else 1  # noqa: PLR2004  # the third argument
    if step and (last - first) // step * _ITEM_BYTES * _BATCH_ROWS > MOST_BYTES:
        raise _too_large(name)


def _next(tokens: Sequence[Token], at: int) -> int | None:
    return next((i for i in range(at, len(tokens)) if tokens[i].kind not in BLANK), None)
