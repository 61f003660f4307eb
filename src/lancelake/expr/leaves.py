"""Rules for single conditions: what a comparison, a list or a pattern means for a column.

SQL that is read here, SQL that DataFusion has parsed and pyarrow expressions all obey them, so that
a condition has one meaning and one error however it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import pyarrow as pa

from lancelake.errors import InvalidExpressionError
from lancelake.expr import condition, literals
from lancelake.format.schema import join_path

Operand = condition.Column | literals.Literal | None
"""A side of a condition; None for anything but a column or a constant."""

NULL = pa.NULL
_OPERATORS = {o.value: o for o in condition.Operator} | {"<>": condition.Operator.NOT_EQUAL}
_TEXT_TESTS = {test.value: test for test in condition.TextTest}
LEAVES = frozenset({"IN", "IS NULL", "IS NOT NULL", "BETWEEN", "LIKE", *_OPERATORS, *_TEXT_TESTS})
"""Tests that `leaf` takes."""
_ESCAPES = ("%", "_", "\\")


def truth(value: Operand) -> condition.Truth | condition.Constant | None:
    """Return the condition that a value is by itself; None where it is none."""
    match value:
        case condition.Column():
            return condition.Truth(column=value) if pa.types.is_boolean(value.dtype) else None
        case bool():
            return condition.Constant(truth=value)
        case _:
            return condition.Constant(truth=None) if _is_null(value) else None


def leaf(test: str, value: Operand, others: Sequence[Operand]) -> condition.Condition | None:
    """Return a test of a value, by its name in SQL; None where DataFusion has to evaluate it."""
    match test, others:
        case "IN", _:
            return _membership(value, others)
        case "IS NULL", []:
            return condition.IsNull(column=value) if isinstance(value, condition.Column) else None
        case "IS NOT NULL", []:
            return (
                condition.negated(condition.IsNull(column=value))
                if isinstance(value, condition.Column)
                else None
            )
        case "BETWEEN", [low, high]:
            bounds = (_comparison(value, ">=", low), _comparison(value, "<=", high))
            return None if None in bounds else condition.all_of(bounds)  # type: ignore[arg-type]
        case "LIKE", [pattern]:
            return _like(value, pattern)
        case _, [other] if test in _OPERATORS:
            return _comparison(value, test, other)
        case _, [str() as text] if test in _TEXT_TESTS and _is_text_column(value):
            return condition.TextMatch(column=value, test=_TEXT_TESTS[test], text=text)
        case _:
            return None


def _comparison(left: Operand, test: str, right: Operand) -> condition.Condition | None:
    operator = _OPERATORS[test]
    if not isinstance(left, condition.Column):
        left, operator, right = right, operator.mirrored, left
    if not isinstance(left, condition.Column) or right is None:
        return None
    if isinstance(right, condition.Column):
        is_alike = right.dtype == left.dtype and literals.is_comparable(left.dtype)
        if not is_alike or literals.is_float(left.dtype):
            return None
        return condition.ColumnComparison(left=left, operator=operator, right=right)
    _ensure_alike(left, right)
    value = literals.typed(right, left.dtype)
    return (
        None if value is None else condition.Comparison(column=left, operator=operator, value=value)
    )


def _membership(column: Operand, items: Sequence[Operand]) -> condition.Membership | None:
    kinds = set(map(type, items))
    if not isinstance(column, condition.Column) or kinds & {condition.Column, type(None)}:
        return None
    if literals.is_text(column.dtype) and kinds & {int, float}:
        for item in items:
            _ensure_alike(column, item)
    values = items if kinds <= {int, float, str, bool} else [i for i in items if not _is_null(i)]
    array = literals.typed_array(values, column.dtype) if values else None
    if array is None:
        return None
    return condition.Membership(column=column, values=array, has_null=len(values) < len(items))


def _like(column: Operand, pattern: Operand) -> condition.Condition | None:
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
            return condition.TextMatch(
                column=column, test=condition.TextTest.STARTS_WITH, text=inner
            )
        case True, False:
            return condition.TextMatch(column=column, test=condition.TextTest.ENDS_WITH, text=inner)
        case _:
            return condition.TextMatch(column=column, test=condition.TextTest.CONTAINS, text=inner)


def _ensure_alike(column: condition.Column, value: Operand) -> None:
    """Refuse to compare text with a number: whether the text is a number depends on the rows."""
    if literals.is_text(column.dtype) and type(value) in (int, float):
        name = join_path(column.path)
        problem = f"column {name} is text: could not convert the number {value} to text"
        raise InvalidExpressionError(
            problem, text=str(value), action=f"Compare with '{value}', or cast the column."
        )


def _is_null(value: Operand) -> bool:
    return isinstance(value, pa.Scalar) and not value.is_valid


def _is_text_column(value: Operand) -> TypeGuard[condition.Column]:
    return isinstance(value, condition.Column) and literals.is_text(value.dtype)
