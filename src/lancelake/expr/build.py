"""Building of conditions: plain ones as they are read, the others through DataFusion."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, assert_never

import pyarrow as pa

from lancelake.errors import InvalidExpressionError
from lancelake.expr.bind import BoundExpression, input_name
from lancelake.expr.condition import (
    Column,
    Comparison,
    Condition,
    Constant,
    Leaf,
    Operator,
    Path,
    SqlLeaf,
    TextMatch,
    all_of,
    any_of,
    negated,
)
from lancelake.expr.evaluate import Evaluator, fold, parse
from lancelake.expr.literals import is_text, type_at
from lancelake.expr.planned_condition import Translator, chain, list_match, operands
from lancelake.expr.structure import Chain, Negation, Part, Structure, shown

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
    except _NotParsedError:
        return NOTHING


class _NotParsedError(Exception):
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
            raise _NotParsedError
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
                raise _NotParsedError
            case _:
                return _Piece(letter)

    def _group(self) -> _Piece:
        self._depth += 1
        if self._peek() == "?":
            if not self._pattern.startswith("?:", self._at):
                raise _NotParsedError
            self._at += 2
        if self._depth > _MOST_GROUPS:
            raise _NotParsedError
        need = self._alternatives()
        if self._next() != ")":
            raise _NotParsedError
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
                raise _NotParsedError
            if letter == "\\":
                self._next()
        if any(operator in self._pattern[start : self._at] for operator in _SET_OPERATORS):
            raise _NotParsedError
        return _Piece(None)

    def _escape(self) -> _Piece:
        letter = self._next()
        if letter in _UNKNOWN_ESCAPES:
            return _Piece(None)
        if not letter.isascii() or letter.isalnum() or letter in "<>_ ":
            raise _NotParsedError
        return _Piece(letter)

    def _repeat(self) -> _Repeat:
        is_needed, is_once = True, True
        while (letter := self._peek()) and letter in "*+?{":
            if letter == "{":
                count = _REPEATED.match(self._pattern, self._at)
                if count is None:
                    raise _NotParsedError
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
            raise _NotParsedError
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


if TYPE_CHECKING:
    from datafusion.expr import Expr

# This many conditions are evaluated by DataFusion at once: each evaluation has a fixed cost.
_EVALUATED_AT_ONCE = 500


class ConditionSource(Protocol):
    """What a user wrote, whose structure is known and whose parts are read one by one."""

    @property
    def text(self) -> str:
        """The whole, for messages."""

    def plain(self, part: Part) -> Condition | None:
        """Read a part that is a plain condition; None where it is anything else."""

    def bound(self, part: Part) -> BoundExpression:
        """Return a part in SQL; raise for one that DataFusion's parser must not get."""

    def joined(self, parts: Sequence[Part], word: str) -> BoundExpression:
        """Return several parts in SQL, joined by AND or OR."""


def build(structure: Structure, source: ConditionSource, schema: pa.Schema) -> Condition:
    """Build the condition of a structure; raise for anything that is not a condition."""
    builder = _Builder(source, schema)
    condition = builder.condition(structure)
    if isinstance(condition, Constant) and condition.truth is None:
        raise _no_condition(source.text, pa.null())
    if isinstance(condition, SqlLeaf):
        builder.check(condition, may_be_null=False)
    return condition


class _Builder:
    def __init__(self, source: ConditionSource, schema: pa.Schema) -> None:
        self._source = source
        self._schema = schema
        self._searchable: set[Path] = set()
        """Columns with a condition that an index of texts can help with."""

    def condition(self, structure: Structure) -> Condition:
        """Build the condition of a structure."""
        match structure:
            case Part():
                return self._part(structure)
            case Negation():
                inner = self.condition(structure.part)
                if isinstance(inner, SqlLeaf):
                    self.check(inner, may_be_null=True)
                return negated(inner)
            case Chain():
                return self._chain(structure)
            case _:
                assert_never(structure)

    def check(self, leaf: SqlLeaf, *, may_be_null: bool) -> None:
        """Raise for an expression that DataFusion cannot evaluate, or that is not a condition."""
        evaluator = Evaluator(leaf.expression, is_condition=True)
        dtype = evaluator.result_field("filter", self._schema).type
        if not pa.types.is_boolean(dtype) and not (may_be_null and pa.types.is_null(dtype)):
            raise _no_condition(leaf.expression.text, dtype)

    def _chain(self, chain: Chain) -> Condition:
        parts: list[Condition] = []
        # Conditions on a text that may have an index stay apart, so that it can be asked.
        slow: list[tuple[SqlLeaf, Part]] = []
        for part in chain.parts:
            inner = self.condition(part)
            if isinstance(part, Part) and isinstance(inner, SqlLeaf):
                slow.append((inner, part))
            else:
                parts.append(inner)
        by_column: dict[Path | None, list[Part]] = {}
        for leaf, part in slow:
            by_column.setdefault(self._searched(leaf), []).append(part)
        for some in by_column.values():
            parts += self._leaves(some, chain.word)
        return all_of(parts) if chain.word == "AND" else any_of(parts)

    def _searched(self, leaf: SqlLeaf) -> Path | None:
        """Return the column that a condition is about, if an index of texts may help there."""
        paths = set(leaf.expression.paths)
        return paths.pop() if len(paths) == 1 and paths <= self._searchable else None

    def _leaves(self, slow: Sequence[Part], word: str) -> Iterator[SqlLeaf]:
        """Join parts that DataFusion evaluates, as many as are evaluated at once."""
        for first in range(0, len(slow), _EVALUATED_AT_ONCE):
            parts = slow[first : first + _EVALUATED_AT_ONCE]
            leaf = SqlLeaf(expression=self._source.joined(parts, word))
            self.check(leaf, may_be_null=True)
            yield leaf

    def _part(self, part: Part) -> Condition:
        plain = self._source.plain(part)
        if plain is not None:
            return plain
        bound = self._source.bound(part)
        columns = _columns(bound, self._schema)
        translator = Translator(column=columns.get, other=_refuse, fold=fold)
        node = parse(bound, self._schema)
        try:
            return translator.condition(node)
        except _NotPlainError:
            match = list_match(node, bound, columns.get, fold)
            if match is not None:
                return match
            if len(set(bound.paths)) == 1 and need_of_node(node) != NOTHING:
                self._searchable.add(bound.paths[0])
            return SqlLeaf(expression=bound)


class _NotPlainError(Exception):
    """A part of an expression is not a plain comparison."""


def _refuse(_: Expr) -> Condition:
    raise _NotPlainError


def _columns(bound: BoundExpression, schema: pa.Schema) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for place, path in enumerate(bound.paths):
        dtype = type_at(schema, path)
        if dtype is not None:
            columns[input_name(place)] = Column(path=path, dtype=dtype)
    return columns


def _no_condition(text: str, dtype: pa.DataType) -> InvalidExpressionError:
    problem = f"the filter {shown(text)} does not return a boolean: it returns {dtype}"
    return InvalidExpressionError(problem, text=shown(text))
