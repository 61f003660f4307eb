"""Translation of DataFusion expressions to conditions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from lancelake.expr.bind import BoundExpression
from lancelake.expr.condition import Column, Condition, ListMatch, ListTest, all_of, any_of, negated
from lancelake.expr.leaves import LEAVES, Operand, leaf, truth
from lancelake.expr.literals import literal, typed

if TYPE_CHECKING:
    from datafusion.expr import Expr

_JOINS: dict[str, Callable[[Sequence[Condition]], Condition]] = {"AND": all_of, "OR": any_of}
_TESTS = {
    "IsNull": "IS NULL",
    "IsNotNull": "IS NOT NULL",
    "Between": "BETWEEN",
    "InList": "IN",
    "Like": "LIKE",
}
_CASTS = ("arrow_cast(", "CAST(")
_ONE = "array_has"
_MANY = {"array_has_any": ListTest.ANY, "array_has_all": ListTest.ALL}
_OPERANDS = 2

Fold: TypeAlias = "Callable[[Expr], pa.Scalar | None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Translator:
    """Translates expressions over columns that a lookup finds by name.

    `other` handles what is not a plain comparison, `fold` evaluates constant expressions.
    """

    column: Callable[[str], Column | None]
    other: Callable[[Expr], Condition]
    fold: Fold

    def condition(self, node: Expr) -> Condition:
        """Translate a condition."""
        condition = self._plain(node)
        return self.other(node) if condition is None else condition

    def _plain(self, node: Expr) -> Condition | None:
        match node.variant_name():
            case "Column" | "Literal":
                return truth(self._operand(node))
            case "Not":
                return negated(self.condition(operands(node)[0]))
            case "BinaryExpr":
                name = node.rex_call_operator()
                if name in _JOINS:
                    return _JOINS[name]([self.condition(part) for part in chain(node, name)])
                return self._leaf(name, node)
            case "ScalarFunction":
                return self._leaf(_function(node), node)
            case "Like" if _is_special(node):
                return None
            case kind if kind in _TESTS:
                test = self._leaf(_TESTS[kind], node)
                is_negated = not kind.startswith("Is") and node.to_variant().negated()
                return negated(test) if is_negated and test is not None else test
            case _:
                return None

    def _leaf(self, test: str, node: Expr) -> Condition | None:
        if test not in LEAVES:
            return None
        value, *others = map(self._operand, operands(node))
        return leaf(test, value, others)

    def _operand(self, node: Expr) -> Operand:
        match node.variant_name():
            case "Column":
                return self.column(node.to_variant().name())
            case "Literal":
                return literal(node.python_value())
            case _:
                # What is cast has the type of the cast, and is no number that lost its quotes.
                return constant(node, self.fold)


def _is_special(node: Expr) -> bool:
    """Whether a pattern has an escape, or ignores the case."""
    return node.to_variant().escape_char() is not None or " ILIKE " in node.canonical_name()


def list_match(
    node: Expr, bound: BoundExpression, column: Callable[[str], Column | None], fold: Fold
) -> ListMatch | None:
    """Read a call with a list column and constants; None for anything else."""
    if node.variant_name() == "Alias":
        node = node.to_variant().expr()  # what DataFusion makes of the other names of a function
    name = _function(node)
    arguments = operands(node) if name in (_ONE, *_MANY) else []
    if len(arguments) != _OPERANDS:
        return None
    is_column = arguments[0].variant_name() == "Column"
    target = column(arguments[0].to_variant().name()) if is_column else None
    if target is None or not _is_list(target.dtype):
        return None
    constants = _constants(name, arguments[1], fold)
    values = None if constants is None else _elements(constants, target.dtype.value_type)
    # Without a constant, or with null, nothing is known about the elements of the list.
    if not values or (name == _ONE and values[0] is None):
        return None
    array = pa.array(values, target.dtype.value_type)
    test = _MANY.get(name, ListTest.ANY)
    return ListMatch(column=target, test=test, values=array, expression=bound)


def _function(node: Expr) -> str:
    """Return the name of a function; nothing for other expressions."""
    is_function = node.variant_name() == "ScalarFunction"
    return node.schema_name().partition("(")[0] if is_function else ""


def _is_list(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_list(dtype) or pa.types.is_large_list(dtype))


def _constants(name: str, node: Expr, fold: Fold) -> list[pa.Scalar] | None:
    """Return the constants that a call looks for; None where they are not constant."""
    if name != _ONE and _function(node) != "make_array":
        return None
    items = [node] if name == _ONE else operands(node)
    values = [constant(item, fold) for item in items]
    return None if any(value is None for value in values) else values


def _elements(constants: Sequence[pa.Scalar], dtype: pa.DataType) -> list[pa.Scalar | None] | None:
    """Return constants as elements of a type; None where the type cannot represent one."""
    elements: list[pa.Scalar | None] = []
    for value in constants:
        if not value.is_valid:
            elements.append(None)
            continue
        element = typed(value, dtype)
        if element is None or not _is_same(value, element):
            return None
        elements.append(element)
    return elements


def _is_same(value: pa.Scalar, element: pa.Scalar) -> bool:
    """Whether a number is the same in the type of the elements: DataFusion compares it as it is."""
    if not pa.types.is_floating(element.type):
        return True
    before, after = float(value.as_py()), float(element.as_py())
    return before == after or (math.isnan(before) and math.isnan(after))


def constant(node: Expr, fold: Callable[[Expr], pa.Scalar | None]) -> pa.Scalar | None:
    """Return the value of a literal, or of one that is cast; None for anything else."""
    if node.variant_name() == "Literal":
        return node.python_value()
    is_cast = node.canonical_name().startswith(_CASTS)
    is_constant = is_cast and operands(node)[0].variant_name() == "Literal"
    return fold(node) if is_constant else None


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
