"""Predicate of a scan, from SQL text, a pyarrow expression or a condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import InvalidRequestError
from lancelake.expr.arrow_condition import arrow_condition
from lancelake.expr.bind import Binder, BoundExpression, Names, PathOf
from lancelake.expr.build import build
from lancelake.expr.condition import (
    And,
    Column,
    ColumnComparison,
    Comparison,
    Condition,
    Constant,
    IsNan,
    IsNull,
    Leaf,
    ListMatch,
    Membership,
    Not,
    Or,
    Path,
    PlannedLeaf,
    SqlLeaf,
    TextMatch,
    Truth,
    all_of,
    needs_datafusion,
    negated,
    paths_of,
)
from lancelake.expr.evaluate import evaluate
from lancelake.expr.leaves import LEAVES, NULL, Operand, leaf, truth
from lancelake.expr.literals import Literal, quoted, to_sql, type_at
from lancelake.expr.structure import BLANK, Part, Token, TokenKind, check_chains, structure
from lancelake.format.schema import Schema, quoted_name

_CONSTANTS: dict[str, Literal] = {"TRUE": True, "FALSE": False, "NULL": NULL}
_TEXTS = (TokenKind.STRING, TokenKind.QUOTED_STRING)
_NAME_TOKENS = (TokenKind.NAME, TokenKind.QUOTED_NAME)


def sql_condition(
    text: str,
    schema: Schema,
    arrow_schema: pa.Schema,
    extra_names: Sequence[str] = (),
    path_of: PathOf | None = None,
) -> Condition:
    """Parse a condition over the columns of a schema; raise for anything else."""
    binder = Binder(text, Names(schema, extra_names, path_of))
    whole = structure(binder.tokens, text, binder.is_reserved_column)
    return build(whole, _SqlSource(binder, arrow_schema), arrow_schema)


class _SqlSource:
    """The tokens of a text, whose parts are ranges of them."""

    def __init__(self, binder: Binder, schema: pa.Schema) -> None:
        self._binder = binder
        self._schema = schema

    @property
    def text(self) -> str:
        return self._binder.text

    def plain(self, part: Part) -> Condition | None:
        return _Leaf(self._binder, self._range(part), self._schema).condition()

    def bound(self, part: Part) -> BoundExpression:
        tokens = self._range(part)
        check_chains(self._binder.tokens[tokens.start : tokens.stop], self._binder.text)
        return self._binder.bound(tokens.start, tokens.stop)

    def joined(self, parts: Sequence[Part], word: str) -> BoundExpression:
        return self._binder.joined([(part.start, part.stop) for part in parts], word)

    def _range(self, part: Part) -> range:
        tokens = range(part.start, part.stop)
        is_blank = all(self._binder.tokens[i].kind in BLANK for i in tokens)
        # For a part that is missing, the parser reports what it expects in the whole text.
        return range(len(self._binder.tokens)) if is_blank else tokens


class _Leaf:
    """Reader of one plain condition."""

    def __init__(self, binder: Binder, tokens: range, schema: pa.Schema) -> None:
        self._binder = binder
        self._schema = schema
        self._places = [i for i in tokens if binder.tokens[i].kind not in BLANK]
        self._tokens = [binder.tokens[i] for i in self._places]
        self._at = 0

    def condition(self) -> Condition | None:
        """Read the condition; None where it is not plain."""
        value = self._operand()
        if self._is_at_end():
            return truth(value)
        if self._takes("IS"):
            test = "IS NOT NULL" if self._takes("NOT") else "IS NULL"
            return leaf(test, value, []) if self._takes("NULL") and self._is_at_end() else None
        is_negated = self._takes("NOT")
        condition = self._test(value, is_negated=is_negated)
        return negated(condition) if is_negated and condition is not None else condition

    def _test(self, value: Operand, *, is_negated: bool) -> Condition | None:
        """Read what follows a value, up to the end."""
        if self._takes("IN"):
            test, others = "IN", self._items()
        elif self._takes("BETWEEN"):
            low, is_range = self._operand(), self._takes("AND")
            test, others = "BETWEEN" if is_range else "", [low, self._operand()]
        else:
            test, others = "" if is_negated else self._operator(), [self._operand()]
        return leaf(test, value, others) if test and self._is_at_end() else None

    def _items(self) -> list[Operand]:
        """Read constants in parentheses; none where there is anything else."""
        items: list[Operand] = []
        separator = "("
        while self._symbol() == separator:
            self._at += 1
            items.append(self._operand())
            separator = ","
        is_closed = bool(items) and self._symbol() == ")"
        self._at += 1
        return items if is_closed and self._is_at_end() else []

    def _operator(self) -> str:
        both = self._symbol() + self._symbol(1)
        places = self._places[self._at : self._at + 2]
        is_long = both in LEAVES and len(both) > 1 and places[1] == places[0] + 1
        operator = both if is_long else both[:1]
        self._at += len(operator)
        return operator if operator in LEAVES else ""

    def _operand(self) -> Operand:
        """Read a constant or a column; None where there is anything else."""
        sign = self._symbol()
        if sign == "-":
            self._at += 1
        if self._is_at_end():
            return None
        token = self._tokens[self._at]
        self._at += 1
        if token.kind is TokenKind.NUMBER:
            return _number(sign + token.text)
        if sign:
            return None
        if token.kind in _TEXTS:
            return token.value
        if token.kind is TokenKind.NAME and token.text.upper() in _CONSTANTS:
            return _CONSTANTS[token.text.upper()]
        return self._column() if token.kind in _NAME_TOKENS else None

    def _column(self) -> Column | None:
        """Return the column whose first name was read."""
        path, end = self._binder.column_at(self._places[self._at - 1])
        while not self._is_at_end() and self._places[self._at] < end:
            self._at += 1
        dtype = None if path is None else type_at(self._schema, path)
        return None if path is None or dtype is None else Column(path=path, dtype=dtype)

    def _takes(self, word: str) -> bool:
        """Read a word, if it is next."""
        if self._is_at_end():
            return False
        token = self._tokens[self._at]
        is_next = token.kind is TokenKind.NAME and token.text.upper() == word
        self._at += is_next
        return is_next

    def _symbol(self, ahead: int = 0) -> str:
        at = self._at + ahead
        token: Token | None = self._tokens[at] if at < len(self._tokens) else None
        return token.text if token is not None and token.kind is TokenKind.SYMBOL else ""

    def _is_at_end(self) -> bool:
        return self._at >= len(self._tokens)


def _number(text: str) -> int | float | None:
    """Return a number as DataFusion reads it; None beyond 64 bits."""
    if not text.lstrip("-").isdecimal():
        return float(text)
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 64 else None


_SHOWN_VALUES = 20
_TIMES = {
    "DATE": pa.types.is_date,
    "TIME": pa.types.is_time,
    "TIMESTAMP": pa.types.is_timestamp,
}


def condition_sql(condition: Condition, *, most_values: int = _SHOWN_VALUES) -> str:
    """Return a condition in SQL; long lists are shortened to their first values and length."""
    match condition:
        case Not(part=IsNull() as test):
            return f"{_name(test.column)} IS NOT NULL"
        case Not():
            return f"NOT ({condition_sql(condition.part, most_values=most_values)})"
        case And() | Or():
            word = " AND " if isinstance(condition, And) else " OR "
            parts = (condition_sql(part, most_values=most_values) for part in condition.parts)
            return word.join(f"({part})" for part in parts)
        case _:
            return _leaf(condition, most_values)


def _leaf(leaf: Leaf, most_values: int) -> str:
    match leaf:
        case Constant():
            return {True: "true", False: "false", None: "NULL"}[leaf.truth]
        case Truth():
            return _name(leaf.column)
        case Comparison():
            return f"{_name(leaf.column)} {leaf.operator.value} {_value(leaf.value)}"
        case ColumnComparison():
            return f"{_name(leaf.left)} {leaf.operator.value} {_name(leaf.right)}"
        case Membership():
            return f"{_name(leaf.column)} IN ({_list(leaf, most_values)})"
        case IsNull() | IsNan():
            name = _name(leaf.column)
            return f"{name} IS NULL" if isinstance(leaf, IsNull) else f"isnan({name})"
        case TextMatch():
            return f"{leaf.test.value}({_name(leaf.column)}, {quoted(leaf.text)})"
        case SqlLeaf() | ListMatch():
            return leaf.expression.text
        case PlannedLeaf():
            return str(leaf.expression.canonical_name())
        case _:
            assert_never(leaf)


def _list(leaf: Membership, most_values: int) -> str:
    shown = [_value(value) for value in leaf.values[:most_values]]
    more = len(leaf.values) - len(shown)
    shown += ["NULL"] if leaf.has_null else []
    return ", ".join(shown) + (f", ... {more} more" if more > 0 else "")


def _name(column: Column) -> str:
    return ".".join(part if _is_plain(part) else quoted_name(part) for part in column.path)


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _value(value: pa.Scalar) -> str:
    """Return a constant as people write it; the type of the column determines its own."""
    dtype = value.type
    if value.is_valid and pa.types.is_decimal(dtype):
        return f"{value.as_py():f}"
    word = next((word for word, is_of in _TIMES.items() if is_of(dtype)), None)
    if value.is_valid and word is not None:
        return f"{word} '{value.cast(pa.string()).as_py()}'"
    return to_sql(value) or str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A condition that selects rows, and its text."""

    condition: Condition
    text: str

    @property
    def paths(self) -> tuple[Path, ...]:
        """Columns of the filter."""
        return paths_of(self.condition)

    @property
    def needs_datafusion(self) -> bool:
        """Whether a part is evaluated by DataFusion, which may fail on a value."""
        return needs_datafusion(self.condition)

    def __call__(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return true for rows to keep; null counts as false to callers."""
        return evaluate(self.condition, batch)


Filter: TypeAlias = str | pc.Expression | Predicate
"""A filter of a user, or one that is already parsed."""


def joined(conditions: Sequence[Condition]) -> Predicate | None:
    """Join predicates by AND; None without any."""
    if not conditions:
        return None
    whole = all_of(conditions)
    return Predicate(condition=whole, text=condition_sql(whole))


def predicate(
    filter: Filter,
    schema: Schema,
    arrow_schema: pa.Schema,
    extra: Sequence[str],
    path_of: PathOf | None = None,
) -> Predicate:
    """Parse a user's filter; raise for one that is not a condition."""
    if isinstance(filter, Predicate):
        return filter
    if isinstance(filter, str):
        condition = sql_condition(filter, schema, arrow_schema, extra, path_of)
        return Predicate(condition=condition, text=filter)
    if isinstance(filter, pc.Expression):
        condition = arrow_condition(filter, schema, arrow_schema, extra, path_of)
        return Predicate(condition=condition, text=condition_sql(condition))
    problem = f"a filter is SQL text or a pyarrow expression, not {type(filter).__name__}"
    raise InvalidRequestError(problem)
