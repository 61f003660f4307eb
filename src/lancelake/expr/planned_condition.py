"""Translation of DataFusion expressions to conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

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
    any_of,
    negated,
)
from lancelake.expr.literals import is_comparable, is_float, is_text, typed

if TYPE_CHECKING:
    from datafusion.expr import Expr

_OPERATORS = {o.value: o for o in Operator}
_JOINS: dict[str, Callable[[Sequence[Condition]], Condition]] = {"AND": all_of, "OR": any_of}
_CASTS = ("arrow_cast(", "CAST(")
_ESCAPES = ("%", "_", "\\")


@dataclass(frozen=True, slots=True, kw_only=True)
class Translator:
    """Translates expressions over columns that a lookup finds by name.

    `other` handles what is not a plain comparison, `fold` evaluates constant expressions.
    """

    column: Callable[[str], Column | None]
    other: Callable[[Expr], Condition]
    fold: Callable[[Expr], pa.Scalar | None]

    def condition(self, node: Expr) -> Condition:
        """Translate a condition."""
        found = self._known(node)
        return self.other(node) if found is None else found

    def _known(self, node: Expr) -> Condition | None:
        match node.variant_name():
            case "Column":
                column = self._column(node)
                is_truth = column is not None and pa.types.is_boolean(column.dtype)
                return Truth(column=column) if column is not None and is_truth else None
            case "Literal":
                return _constant(node.python_value())
            case "BinaryExpr":
                return self._binary(node)
            case "Not":
                return negated(self.condition(operands(node)[0]))
            case "IsNull" | "IsNotNull":
                column = self._column(operands(node)[0])
                is_null = None if column is None else IsNull(column=column)
                is_positive = node.variant_name() == "IsNull" or is_null is None
                return is_null if is_positive or is_null is None else negated(is_null)
            case "Between":
                return self._between(node)
            case "InList":
                return self._membership(node)
            case "Like":
                return self._like(node)
            case "ScalarFunction":
                return self._text_test(node)
            case _:
                return None

    def _binary(self, node: Expr) -> Condition | None:
        name = node.rex_call_operator()
        if name in _JOINS:
            return _JOINS[name]([self.condition(part) for part in chain(node, name)])
        if name not in _OPERATORS:
            return None
        left, right = operands(node)
        if self._column(left) is None:
            return self._compared(right, _OPERATORS[name].mirrored, left)
        return self._compared(left, _OPERATORS[name], right)

    def _compared(self, left: Expr, operator: Operator, right: Expr) -> Condition | None:
        column, other = self._column(left), self._column(right)
        if column is None:
            return None
        if other is not None:
            is_alike = other.dtype == column.dtype and is_comparable(column.dtype)
            if not is_alike or is_float(column.dtype):
                return None
            return ColumnComparison(left=column, operator=operator, right=other)
        value = self._constant(right)
        constant = None if value is None else typed(value, column.dtype)
        if constant is None:
            return None
        return Comparison(column=column, operator=operator, value=constant)

    def _between(self, node: Expr) -> Condition | None:
        value, low, high = operands(node)
        above = self._compared(value, Operator.GREATER_EQUAL, low)
        below = self._compared(value, Operator.LESS_EQUAL, high)
        if above is None or below is None:
            return None
        inside = all_of([above, below])
        return negated(inside) if node.to_variant().negated() else inside

    def _membership(self, node: Expr) -> Condition | None:
        value, *items = operands(node)
        column = self._column(value)
        if column is None:
            return None
        values: list[pa.Scalar] = []
        has_null = False
        for item in items:
            found = self._constant(item)
            constant = None if found is None else typed(found, column.dtype)
            if found is not None and not found.is_valid:
                has_null = True
            elif constant is None:
                return None
            else:
                values.append(constant)
        if not values or not is_comparable(column.dtype):
            return None
        array = pa.array(values, column.dtype).unique()
        inside = Membership(column=column, values=array, has_null=has_null)
        return negated(inside) if node.to_variant().negated() else inside

    def _like(self, node: Expr) -> Condition | None:
        """Translate a pattern with wildcards only at its ends."""
        value, pattern = operands(node)
        column, text = self._column(value), self._text(pattern)
        variant = node.to_variant()
        is_plain = variant.escape_char() is None and " ILIKE " not in node.canonical_name()
        if column is None or text is None or not is_text(column.dtype) or not is_plain:
            return None
        inner = text.removeprefix("%").removesuffix("%")
        if not inner or any(mark in inner for mark in _ESCAPES):
            return None
        found: Condition
        match text.startswith("%"), text.endswith("%"):
            case False, False:
                value_of = pa.scalar(text, column.dtype)
                found = Comparison(column=column, operator=Operator.EQUAL, value=value_of)
            case False, True:
                found = TextMatch(column=column, test=TextTest.STARTS_WITH, text=inner)
            case True, False:
                found = TextMatch(column=column, test=TextTest.ENDS_WITH, text=inner)
            case _:
                found = TextMatch(column=column, test=TextTest.CONTAINS, text=inner)
        return negated(found) if variant.negated() else found

    def _text_test(self, node: Expr) -> Condition | None:
        name = node.schema_name().partition("(")[0]
        test = next((test for test in TextTest if test.value == name), None)
        arguments = operands(node) if test is not None else ()
        if test is None or len(arguments) != 2:  # noqa: PLR2004  # a value and a text
            return None
        column, text = self._column(arguments[0]), self._text(arguments[1])
        if column is None or text is None or not is_text(column.dtype):
            return None
        return TextMatch(column=column, test=test, text=text)

    def _column(self, node: Expr) -> Column | None:
        return self.column(node.to_variant().name()) if node.variant_name() == "Column" else None

    def _constant(self, node: Expr) -> pa.Scalar | None:
        return constant(node, self.fold)

    def _text(self, node: Expr) -> str | None:
        value = node.python_value() if node.variant_name() == "Literal" else None
        is_known = value is not None and value.is_valid and is_text(value.type)
        return str(value.as_py()) if is_known and value is not None else None


def constant(node: Expr, fold: Callable[[Expr], pa.Scalar | None]) -> pa.Scalar | None:
    """Return the value of a literal, or of one that is cast; None for anything else."""
    if node.variant_name() == "Literal":
        return node.python_value()
    is_cast = node.canonical_name().startswith(_CASTS)
    is_constant = is_cast and operands(node)[0].variant_name() == "Literal"
    return fold(node) if is_constant else None


def _constant(value: pa.Scalar) -> Condition | None:
    is_truth = pa.types.is_boolean(value.type) or not value.is_valid
    return Constant(truth=value.as_py()) if is_truth else None


def operands(node: Expr) -> list[Expr]:
    """Return the parts of an expression."""
    return list(node.rex_call_operands())


def chain(node: Expr, name: str) -> list[Expr]:
    """Return the parts that one operator joins; long chains lean to the left."""
    parts: list[Expr] = []
    while node.variant_name() == "BinaryExpr" and node.rex_call_operator() == name:
        node, right = operands(node)
        parts.append(right)
    return [node, *reversed(parts)]
