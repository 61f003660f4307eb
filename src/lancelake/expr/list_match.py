"""Recognition of calls such as `array_has(labels, 'x')` as tests of list elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from lancelake.expr.bind import BoundExpression
from lancelake.expr.condition import Column, ListMatch, ListTest
from lancelake.expr.literals import typed
from lancelake.expr.planned_condition import constant, operands

if TYPE_CHECKING:
    from datafusion.expr import Expr

_ONE = "array_has"
_MANY = {"array_has_any": ListTest.ANY, "array_has_all": ListTest.ALL}
_OPERANDS = 2

Fold: TypeAlias = "Callable[[Expr], pa.Scalar | None]"


def list_match(
    node: Expr, bound: BoundExpression, column: Callable[[str], Column | None], fold: Fold
) -> ListMatch | None:
    """Read a call with a list column and constants; None for anything else."""
    if node.variant_name() == "Alias":
        node = node.to_variant().expr()  # what DataFusion makes of the other names of a function
    name, arguments = _call(node)
    if name not in (_ONE, *_MANY) or len(arguments) != _OPERANDS:
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


def _call(node: Expr) -> tuple[str, list[Expr]]:
    if node.variant_name() != "ScalarFunction":
        return "", []
    return node.schema_name().partition("(")[0], operands(node)


def _is_list(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_list(dtype) or pa.types.is_large_list(dtype))


def _constants(name: str, node: Expr, fold: Fold) -> list[pa.Scalar] | None:
    """Return the constants that a call looks for; None where they are not constant."""
    maker, items = _call(node)
    if name != _ONE:
        if maker != "make_array":
            return None
    else:
        items = [node]
    found = [constant(item, fold) for item in items]
    return None if any(value is None for value in found) else found


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
