"""Adaptation of parsed expressions to the semantics of Lance, where DataFusion differs.

A number takes the type of the column it is compared with, so that `x = 0.1` finds 0.1 in a column
of 32-bit floats. `regexp_match` as a condition is true where something matches.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pyarrow as pa

from lancelake.expr.literals import fits
from lancelake.expr.planned_condition import chain, operands

if TYPE_CHECKING:
    from datafusion.expr import Expr

TypeOf: TypeAlias = "Callable[[Expr], pa.DataType]"

_JOINS: dict[str, Callable[[Expr, Expr], Expr]] = {"AND": operator.and_, "OR": operator.or_}
_OPERATORS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}


def conform(expression: Expr, schema: pa.Schema, type_of: TypeOf, *, is_condition: bool) -> Expr:
    """Return the expression over columns of this schema with the semantics of Lance.

    `type_of` gives the type of an expression over those columns.
    """
    types = {field.name: field.type for field in schema}
    return _conformed(expression, _Meaning(types, type_of, is_condition))


class _Meaning(NamedTuple):
    types: Mapping[str, pa.DataType]
    type_of: TypeOf
    is_condition: bool


def _conformed(node: Expr, meaning: _Meaning) -> Expr:
    types, is_condition = meaning.types, meaning.is_condition
    match node.variant_name():
        case "BinaryExpr":
            name = node.rex_call_operator()
            if name in _JOINS:
                parts = [_conformed(part, meaning) for part in chain(node, name)]
                return _joined(parts, _JOINS[name])
            return _binary(node, name, types)
        case "Not":
            (inner,) = operands(node)
            return ~_conformed(inner, meaning)
        case "Between":
            value, low, high = operands(node)
            dtype = _type_of(value, types)
            is_negated = node.to_variant().negated()
            return value.between(_typed(low, dtype), _typed(high, dtype), negated=is_negated)
        case "InList":
            return _in_list(node, meaning)
        case "ScalarFunction" if is_condition and node.schema_name().startswith("regexp_match("):
            return node.is_not_null()
        case _:
            return node


def _in_list(node: Expr, meaning: _Meaning) -> Expr:
    from datafusion import functions, literal  # noqa: PLC0415  # loads pandas, too

    value, *items = operands(node)
    dtype = _type_of(value, meaning.types)
    typed = [_typed(item, dtype) for item in items]
    if any(map(_is_zero, items)) and pa.types.is_floating(meaning.type_of(value)):
        # Numbers of a list are looked up by their bits, and zero has two forms.
        typed += [literal(0.0), literal(-0.0)]
    return functions.in_list(value, typed, negated=node.to_variant().negated())


def _binary(node: Expr, name: str, types: Mapping[str, pa.DataType]) -> Expr:
    if name not in _OPERATORS:
        return node
    left, right = operands(node)
    return _OPERATORS[name](
        _typed(left, _type_of(right, types)), _typed(right, _type_of(left, types))
    )


def _joined(parts: Sequence[Expr], join: Callable[[Expr, Expr], Expr]) -> Expr:
    """Join in a balanced tree, because planning takes quadratic time for a deep one."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return join(_joined(parts[:middle], join), _joined(parts[middle:], join))


def _is_zero(node: Expr) -> bool:
    if node.variant_name() != "Literal":
        return False
    number = node.python_value()
    is_number = pa.types.is_integer(number.type) or pa.types.is_floating(number.type)
    return bool(is_number and number.as_py() == 0)


def _type_of(node: Expr, types: Mapping[str, pa.DataType]) -> pa.DataType | None:
    return types.get(node.to_variant().name()) if node.variant_name() == "Column" else None


def _typed(node: Expr, target: pa.DataType | None) -> Expr:
    """Give a number the type of the column beside it, unless that would change an integer."""
    if target is None or node.variant_name() != "Literal":
        return node
    number = node.python_value()
    if number.type == target:
        return node
    is_integer = pa.types.is_integer(number.type)
    if pa.types.is_floating(target) and (is_integer or pa.types.is_floating(number.type)):
        return node.cast(target)
    if is_integer and (pa.types.is_integer(target) or pa.types.is_decimal(target)):
        return node.cast(target) if fits(number.as_py(), target) else node
    return node
