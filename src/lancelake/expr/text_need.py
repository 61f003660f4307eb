"""Texts that a value must contain to satisfy a condition: what an n-gram index can be asked.

Only common syntax is parsed; a pattern with any other syntax needs nothing, which is always safe.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from lancelake.expr.condition import Comparison, Leaf, Operator, SqlLeaf, TextMatch
from lancelake.expr.evaluate import parse
from lancelake.expr.literals import is_text
from lancelake.expr.planned_condition import chain, operands

if TYPE_CHECKING:
    from datafusion.expr import Expr


@dataclass(frozen=True, slots=True)
class Contains:
    """A substring that the text must contain."""

    text: str


@dataclass(frozen=True, slots=True)
class AllOf:
    """Needs that must all be met; an empty list is met by every text."""

    parts: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Needs of which at least one must be met."""

    parts: tuple[Need, ...]


Need = Contains | AllOf | AnyOf
NOTHING = AllOf()


def all_needed(parts: Sequence[Need]) -> Need:
    """Combine needs that must all be met."""
    needed = tuple(part for part in parts if part != NOTHING)
    return needed[0] if len(needed) == 1 else AllOf(needed)


def any_needed(parts: Sequence[Need]) -> Need:
    """Combine needs of which at least one must be met."""
    return NOTHING if NOTHING in parts else AnyOf(tuple(parts))


_SPECIAL = frozenset("\\.+*?()|[]{}^$")
_REPEATED = re.compile(r"\{(\d+)(,\d*)?\}")
# Escapes of an unknown character, or of a position between characters.
_UNKNOWN_ESCAPES = frozenset("dDwWsSbBAzntrfv")
_SET_OPERATORS = ("&&", "--", "~~")
_MOST_GROUPS = 32


def need_of_regex(pattern: str) -> Need:
    """Return the substrings of every text that matches a pattern."""
    try:
        return _Reader(pattern).read()
    except _NotPlainError:
        return NOTHING


class _NotPlainError(Exception):
    """The pattern has syntax that is not parsed."""


class _Piece(NamedTuple):
    """A part of a pattern: one character, or a group with its needs."""

    letter: str | None
    need: Need = NOTHING


class _Repeat(NamedTuple):
    is_needed: bool
    is_once: bool


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0

    def read(self) -> Need:
        texts = self._alternatives()
        if self._at != len(self._pattern):
            raise _NotPlainError
        return texts

    def _alternatives(self) -> Need:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else any_needed(branches)

    def _sequence(self) -> Need:
        needs: list[Need] = []
        run = ""
        while self._peek() not in ("", "|", ")"):
            letter, need = self._piece()
            is_needed, is_once = self._repeat()
            if letter is not None and is_needed:
                run += letter
                if is_once:
                    continue
            needs.append(Contains(run))
            # The last repetition of a character is adjacent to the next part.
            run = letter if letter is not None and is_needed else ""
            if is_needed:
                needs.append(need)
        needs.append(Contains(run))
        return all_needed([need for need in needs if need != Contains("")])

    def _piece(self) -> _Piece:
        letter = self._next()
        match letter:
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "." | "^" | "$":
                return _Piece(None)
            case "\\":
                return self._escape()
            case _ if letter in _SPECIAL:
                raise _NotPlainError
            case _:
                return _Piece(letter)

    def _group(self) -> _Piece:
        self._depth += 1
        if self._peek() == "?":
            if not self._pattern.startswith("?:", self._at):
                raise _NotPlainError
            self._at += 2
        if self._depth > _MOST_GROUPS:
            raise _NotPlainError
        need = self._alternatives()
        if self._next() != ")":
            raise _NotPlainError
        self._depth -= 1
        return _Piece(None, need)

    def _class(self) -> _Piece:
        start = self._at
        if self._peek() == "^":
            self._at += 1
        if self._peek() == "]":
            self._at += 1
        while (letter := self._next()) != "]":
            if letter == "[":
                raise _NotPlainError
            if letter == "\\":
                self._next()
        if any(operator in self._pattern[start : self._at] for operator in _SET_OPERATORS):
            raise _NotPlainError
        return _Piece(None)

    def _escape(self) -> _Piece:
        letter = self._next()
        if letter in _UNKNOWN_ESCAPES:
            return _Piece(None)
        if not letter.isascii() or letter.isalnum() or letter in "<>_ ":
            raise _NotPlainError
        return _Piece(letter)

    def _repeat(self) -> _Repeat:
        is_needed, is_once = True, True
        while (letter := self._peek()) and letter in "*+?{":
            if letter == "{":
                count = _REPEATED.match(self._pattern, self._at)
                if count is None:
                    raise _NotPlainError
                self._at = count.end()
                is_needed = is_needed and int(count[1]) > 0
            else:
                self._at += 1
                is_needed = is_needed and letter == "+"
            is_once = False
            if self._peek() == "?":  # takes as few as it can
                self._at += 1
        return _Repeat(is_needed, is_once)

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        letter = self._peek()
        if not letter:
            raise _NotPlainError
        self._at += 1
        return letter


_WILDCARDS = ("%", "_")
_ESCAPE = "\\"


def need_of(leaf: Leaf, dtype: pa.DataType) -> Need:
    """Return the substrings that a column must contain for a condition on it to be true."""
    match leaf:
        case TextMatch():
            return Contains(leaf.text)
        case Comparison() if leaf.operator is Operator.EQUAL and is_text(leaf.value.type):
            return Contains(str(leaf.value.as_py()))
        case SqlLeaf() if len(set(leaf.expression.paths)) == 1:
            return need_of_node(parse(leaf.expression, _schema(leaf.expression.paths[0], dtype)))
        case _:
            return NOTHING


def _schema(path: Sequence[str], dtype: pa.DataType) -> pa.Schema:
    for name in reversed(path[1:]):
        dtype = pa.struct([(name, dtype)])
    return pa.schema([(path[0], dtype)])


def need_of_node(node: Expr) -> Need:
    """Return what the one text that a parsed condition is about must contain."""
    match node.variant_name():
        case "BinaryExpr" if node.rex_call_operator() in ("AND", "OR"):
            name = node.rex_call_operator()
            parts = [need_of_node(part) for part in chain(node, name)]
            return all_needed(parts) if name == "AND" else any_needed(parts)
        case "Like":
            return _of_like(node)
        case "ScalarFunction" if node.schema_name().partition("(")[0] == "regexp_like":
            return _of_regex(node)
        case _:
            return NOTHING


def _of_like(node: Expr) -> Need:
    value, pattern = operands(node)
    variant = node.to_variant()
    text = _text(pattern)
    is_plain = not variant.negated() and variant.escape_char() is None
    is_known = value.variant_name() == "Column" and " ILIKE " not in node.canonical_name()
    if text is None or not is_plain or not is_known:
        return NOTHING
    return all_needed([Contains(part) for part in _between_wildcards(text) if part])


def _between_wildcards(pattern: str) -> list[str]:
    """Return the literal parts of a LIKE pattern; an escape ends a part."""
    parts, is_escaped = [""], False
    for letter in pattern:
        if is_escaped or letter in _WILDCARDS:
            parts.append("")
            is_escaped = False
        elif letter == _ESCAPE:
            is_escaped = True
        else:
            parts[-1] += letter
    return parts


def _of_regex(node: Expr) -> Need:
    arguments = operands(node)
    if len(arguments) != 2 or arguments[0].variant_name() != "Column":  # noqa: PLR2004  # no flags
        return NOTHING
    pattern = _text(arguments[1])
    return NOTHING if pattern is None else need_of_regex(pattern)


def _text(node: Expr) -> str | None:
    value = node.python_value() if node.variant_name() == "Literal" else None
    is_known = value is not None and value.is_valid and is_text(value.type)
    return str(value.as_py()) if is_known and value is not None else None
