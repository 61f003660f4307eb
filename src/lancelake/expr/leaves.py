"""Rules for single conditions: what a comparison, a list or a pattern means for a column.

SQL that is read here, SQL that DataFusion has parsed and pyarrow expressions all obey them, so that
a condition has one meaning and one error however it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import pyarrow as pa

from lancelake.errors import InvalidExpressionError
from lancelake.expr.condition import (
    Column,
    ColumnComparison,
    Comparison,
    Condition,
    Constant,
    IsNull,
    Membership,
    Operator,
    TextMatch,
    TextTest,
    Truth,
    all_of,
    negated,
)
from lancelake.expr.literals import (
    Literal,
    is_comparable,
    is_float,
    is_text,
    typed,
    typed_array,
)
from lancelake.format.schema import join_path

Operand = Column | Literal | None
"""A side of a condition; None for anything but a column or a constant."""

NULL = pa.NULL
_OPERATORS = {o.value: o for o in Operator} | {"<>": Operator.NOT_EQUAL}
_TEXT_TESTS = {test.value: test for test in TextTest}
LEAVES = frozenset({"IN", "IS NULL", "IS NOT NULL", "BETWEEN", "LIKE", *_OPERATORS, *_TEXT_TESTS})
"""Tests that `leaf` takes."""
_ESCAPES = ("%", "_", "\\")


def truth(value: Operand) -> Truth | Constant | None:
    """Return the condition that a value is by itself; None where it is none."""
    match value:
        case Column():
            return Truth(column=value) if pa.types.is_boolean(value.dtype) else None
        case bool():
            return Constant(truth=value)
        case _:
            return Constant(truth=None) if _is_null(value) else None


def leaf(test: str, value: Operand, others: Sequence[Operand]) -> Condition | None:
    """Return a test of a value, by its name in SQL; None where DataFusion has to evaluate it."""
    match test, others:
        case "IN", _:
            return _membership(value, others)
        case "IS NULL", []:
            return IsNull(column=value) if isinstance(value, Column) else None
        case "IS NOT NULL", []:
            return negated(IsNull(column=value)) if isinstance(value, Column) else None
        case "BETWEEN", [low, high]:
            bounds = (_comparison(value, ">=", low), _comparison(value, "<=", high))
            return None if None in bounds else all_of(bounds)  # type: ignore[arg-type]
        case "LIKE", [pattern]:
            return _like(value, pattern)
        case _, [other] if test in _OPERATORS:
            return _comparison(value, test, other)
        case _, [str() as text] if test in _TEXT_TESTS and _is_text_column(value):
            return TextMatch(column=value, test=_TEXT_TESTS[test], text=text)
        case _:
            return None


def _comparison(left: Operand, test: str, right: Operand) -> Condition | None:
    operator = _OPERATORS[test]
    if not isinstance(left, Column):
        left, operator, right = right, operator.mirrored, left
    if not isinstance(left, Column) or right is None:
        return None
    if isinstance(right, Column):
        is_alike = right.dtype == left.dtype and is_comparable(left.dtype)
        if not is_alike or is_float(left.dtype):
            return None
        return ColumnComparison(left=left, operator=operator, right=right)
    _ensure_alike(left, right)
    value = typed(right, left.dtype)
    return None if value is None else Comparison(column=left, operator=operator, value=value)


def _membership(column: Operand, items: Sequence[Operand]) -> Membership | None:
    kinds = set(map(type, items))
    if not isinstance(column, Column) or kinds & {Column, type(None)}:
        return None
    if is_text(column.dtype) and kinds & {int, float}:
        for item in items:
            _ensure_alike(column, item)
    values = items if kinds <= {int, float, str, bool} else [i for i in items if not _is_null(i)]
    array = typed_array(values, column.dtype) if values else None
    if array is None:
        return None
    return Membership(column=column, values=array, has_null=len(values) < len(items))


def _like(column: Operand, pattern: Operand) -> Condition | None:
    """Match a pattern with wildcards only at its ends."""
    if not _is_text_column(column):
        return None
    _ensure_alike(column, pattern)
    if not isinstance(pattern, str):
        return None
    inner = pattern.removeprefix("%").removesuffix("%")
    if not inner or any(mark in inner for mark in _ESCAPES):
        return None
    match pattern.startswith("%"), pattern.endswith("%"):
        case False, False:
            return _comparison(column, "=", pattern)
        case False, True:
            return TextMatch(column=column, test=TextTest.STARTS_WITH, text=inner)
        case True, False:
            return TextMatch(column=column, test=TextTest.ENDS_WITH, text=inner)
        case _:
            return TextMatch(column=column, test=TextTest.CONTAINS, text=inner)


def _ensure_alike(column: Column, value: Operand) -> None:
    """Refuse to compare text with a number: whether the text is a number depends on the rows."""
    if is_text(column.dtype) and type(value) in (int, float):
        name = join_path(column.path)
        problem = f"column {name} is text: could not convert the number {value} to text"
        raise InvalidExpressionError(
            problem, text=str(value), action=f"Compare with '{value}', or cast the column."
        )


def _is_null(value: Operand) -> bool:
    return isinstance(value, pa.Scalar) and not value.is_valid


def _is_text_column(value: Operand) -> TypeGuard[Column]:
    return isinstance(value, Column) and is_text(value.dtype)
