"""Parsing of plain SQL conditions without a SQL parser: `x > 3`, `x IN (1, 2)`, `x IS NULL`."""

from __future__ import annotations

import pyarrow as pa

from lancelake.errors import InvalidExpressionError
from lancelake.expr.arrays import type_at
from lancelake.expr.bind import Binder
from lancelake.expr.condition import (
    Column,
    Comparison,
    Condition,
    Constant,
    IsNull,
    Membership,
    Operator,
    Truth,
    all_of,
    negated,
)
from lancelake.expr.literals import is_text, typed, typed_array
from lancelake.expr.tokens import BLANK, Token, TokenKind
from lancelake.format.column_path import join_path

_OPERATORS = {o.value: o for o in Operator} | {"<>": Operator.NOT_EQUAL}
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_TEXTS = (TokenKind.STRING, TokenKind.QUOTED_STRING)
Literal = bool | int | float | str
_NAMES = (TokenKind.NAME, TokenKind.QUOTED_NAME)


def plain_condition(binder: Binder, start: int, stop: int, schema: pa.Schema) -> Condition | None:
    """Read the tokens of a range as a plain condition; None where they are anything else."""
    reader = _Leaf(binder, start, stop, schema)
    return reader.condition()


class _Leaf:
    def __init__(self, binder: Binder, start: int, stop: int, schema: pa.Schema) -> None:
        self._binder = binder
        self._schema = schema
        places = (i for i in range(start, stop) if binder.tokens[i].kind not in BLANK)
        self._places = tuple(places)
        self._tokens = [binder.tokens[i] for i in self._places]

    def condition(self) -> Condition | None:
        if len(self._tokens) == 1 and (word := self._word(0)) in _CONSTANTS:
            return Constant(truth=_CONSTANTS[word])
        column, at = self._column(0)
        if column is None:
            return self._mirrored()
        if at == len(self._tokens):
            return Truth(column=column) if pa.types.is_boolean(column.dtype) else None
        if self._word(at) == "IS":
            return self._null_test(column, at + 1)
        is_negated = self._word(at) == "NOT"
        word = self._word(at + is_negated)
        if word == "IN":
            found = self._membership(column, at + is_negated + 1)
        elif word == "BETWEEN":
            found = self._between(column, at + is_negated + 1)
        else:
            return None if is_negated else self._comparison(column, at)
        return negated(found) if is_negated and found is not None else found

    def _comparison(self, column: Column, at: int) -> Condition | None:
        operator, at = self._operator(at)
        value, end = self._literal(at)
        return self._compared(column, operator, value) if end == len(self._tokens) else None

    def _mirrored(self) -> Condition | None:
        """Read a comparison whose constant comes first."""
        value, at = self._literal(0)
        if value is None:
            return None
        operator, at = self._operator(at)
        column, end = self._column(at)
        if column is None or operator is None or end != len(self._tokens):
            return None
        return self._compared(column, operator.mirrored, value)

    def _compared(
        self, column: Column, operator: Operator | None, value: Literal | None
    ) -> Condition | None:
        _ensure_alike(column, value)
        constant = None if value is None else typed(_scalar(value), column.dtype)
        if operator is None or constant is None:
            return None
        return Comparison(column=column, operator=operator, value=constant)

    def _null_test(self, column: Column, at: int) -> Condition | None:
        words = tuple(self._word(i) for i in range(at, len(self._tokens)))
        if words == ("NULL",):
            return IsNull(column=column)
        return negated(IsNull(column=column)) if words == ("NOT", "NULL") else None

    def _between(self, column: Column, at: int) -> Condition | None:
        low, at = self._literal(at)
        if self._word(at) != "AND":
            return None
        high, end = self._literal(at + 1)
        if end != len(self._tokens):
            return None
        above = self._compared(column, Operator.GREATER_EQUAL, low)
        below = self._compared(column, Operator.LESS_EQUAL, high)
        return None if above is None or below is None else all_of([above, below])

    def _membership(self, column: Column, at: int) -> Condition | None:
        if self._symbol(at) != "(" or self._symbol(len(self._tokens) - 1) != ")":
            return None
        at += 1
        values: list[object] = []
        has_null = False
        while True:
            if self._word(at) == "NULL":
                has_null, at = True, at + 1
            else:
                value, at = self._literal(at)
                if value is None:
                    return None
                _ensure_alike(column, value)
                values.append(value)
            if self._symbol(at) != ",":
                break
            at += 1
        array = typed_array(values, column.dtype) if values else None
        if at != len(self._tokens) - 1 or array is None:
            return None
        return Membership(column=column, values=array, has_null=has_null)

    def _column(self, at: int) -> tuple[Column | None, int]:
        if at >= len(self._tokens) or self._tokens[at].kind not in _NAMES:
            return None, at
        path, end = self._binder.column_at(self._places[at])
        dtype = None if path is None else type_at(self._schema, path)
        after = next((i for i, p in enumerate(self._places) if p >= end), len(self._places))
        if path is None or dtype is None:
            return None, after
        return Column(path=path, dtype=dtype), after

    def _operator(self, at: int) -> tuple[Operator | None, int]:
        both = self._symbol(at) + self._symbol(at + 1)
        adjacent = at + 1 < len(self._places) and self._places[at + 1] == self._places[at] + 1
        if adjacent and both in _OPERATORS:
            return _OPERATORS[both], at + 2
        return _OPERATORS.get(self._symbol(at)), at + 1

    def _literal(self, at: int) -> tuple[Literal | None, int]:
        sign = self._symbol(at)
        if sign == "-" and at + 1 < len(self._tokens):
            token = self._tokens[at + 1]
            return _number(f"-{token.text}") if token.kind is TokenKind.NUMBER else None, at + 2
        if at >= len(self._tokens):
            return None, at
        return _constant(self._tokens[at]), at + 1

    def _word(self, at: int) -> str:
        is_word = at < len(self._tokens) and self._tokens[at].kind is TokenKind.NAME
        return self._tokens[at].text.upper() if is_word else ""

    def _symbol(self, at: int) -> str:
        is_symbol = 0 <= at < len(self._tokens) and self._tokens[at].kind is TokenKind.SYMBOL
        return self._tokens[at].text if is_symbol else ""


def _ensure_alike(column: Column, value: Literal | None) -> None:
    """Refuse to compare text with a number: whether the text is a number depends on the rows."""
    if is_text(column.dtype) and type(value) in (int, float):
        name = join_path(column.path)
        problem = f"column {name} is text: could not convert the number {value} to text"
        raise InvalidExpressionError(
            problem, text=str(value), action=f"Compare with '{value}', or cast the column."
        )


def _constant(token: Token) -> Literal | None:
    if token.kind is TokenKind.NUMBER:
        return _number(token.text)
    if token.kind in _TEXTS:
        return token.value
    is_truth = token.kind is TokenKind.NAME and token.text.upper() in ("TRUE", "FALSE")
    return token.text.upper() == "TRUE" if is_truth else None


def _number(text: str) -> int | float | None:
    """Return a number as DataFusion reads it; None beyond 64 bits."""
    if not text.lstrip("-").isdecimal():
        return float(text)
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 64 else None


def _scalar(value: Literal) -> pa.Scalar:
    is_large = type(value) is int and value >= 1 << 63
    return pa.scalar(value, pa.uint64()) if is_large else pa.scalar(value)
