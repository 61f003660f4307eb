"""Conditions that Arrow evaluates just as DataFusion does, in a fraction of the time.

These are comparisons of integers, text and truth values with columns and constants of the same
kind, and what joins them. Floats are not among them: the two order NaN and zeros differently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from datafusion.expr import Expr

from lancelake.expr.conform import fits

Kernel = Callable[[pa.RecordBatch], pa.BooleanArray]
Types = Mapping[str, pa.DataType]

_COMPARISONS: dict[str, Callable[..., pa.BooleanArray]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_JOINS: dict[str, Callable[..., pa.BooleanArray]] = {"AND": pc.and_kleene, "OR": pc.or_kleene}


def kernel(node: Expr, schema: pa.Schema) -> Kernel | None:
    """Return the evaluation of a condition over columns of this schema, if Arrow can do it."""
    return _condition(node, {field.name: field.type for field in schema})


def _condition(node: Expr, types: Types) -> Kernel | None:
    match node.variant_name():
        case "Column":
            dtype = _column_type(node, types)
            return _values(node) if dtype is not None and pa.types.is_boolean(dtype) else None
        case "BinaryExpr":
            return _binary(node, types)
        case "Not":
            inner = _condition(_operands(node)[0], types)
            return None if inner is None else lambda batch: pc.invert(inner(batch))
        case "IsNull" | "IsNotNull":
            return _null_test(node, types)
        case "Between":
            return _between(node, types)
        case "InList":
            return _in_list(node, types)
        case _:
            return None


def _binary(node: Expr, types: Types) -> Kernel | None:
    name = node.rex_call_operator()
    if name in _JOINS:
        return _joined(node, name, types)
    if name not in _COMPARISONS:
        return None
    left, right = _operands(node)
    if left.variant_name() == "Literal":
        left, right, name = right, left, _MIRRORED[name]
    return _comparison(left, name, right, types)


def _joined(node: Expr, name: str, types: Types) -> Kernel | None:
    """Join the parts of a chain, which may be too long to go into one by one."""
    parts: list[Expr] = []
    while node.variant_name() == "BinaryExpr" and node.rex_call_operator() == name:
        node, right = _operands(node)
        parts.append(right)
    found = [_condition(part, types) for part in (node, *reversed(parts))]
    kernels = [part for part in found if part is not None]
    if len(kernels) < len(found):
        return None
    join = _JOINS[name]

    def evaluate(batch: pa.RecordBatch) -> pa.BooleanArray:
        result = kernels[0](batch)
        for each in kernels[1:]:
            result = join(result, each(batch))
        return result

    return evaluate


def _comparison(left: Expr, name: str, right: Expr, types: Types) -> Kernel | None:
    dtype = _column_type(left, types)
    if dtype is None:
        return None
    values, compare = _values(left), _COMPARISONS[name]
    if right.variant_name() == "Column":
        others = _values(right)
        if _column_type(right, types) != dtype:
            return None
        return lambda batch: compare(values(batch), others(batch))
    constant = _constant(right, dtype)
    return None if constant is None else lambda batch: compare(values(batch), constant)


def _null_test(node: Expr, types: Types) -> Kernel | None:
    (operand,) = _operands(node)
    if _column_type(operand, types) is None:
        return None
    values = _values(operand)
    test = pc.is_null if node.variant_name() == "IsNull" else pc.is_valid
    return lambda batch: test(values(batch))


def _between(node: Expr, types: Types) -> Kernel | None:
    value, low, high = _operands(node)
    above = _comparison(value, ">=", low, types)
    below = _comparison(value, "<=", high, types)
    if above is None or below is None:
        return None
    is_negated = node.to_variant().negated()

    def evaluate(batch: pa.RecordBatch) -> pa.BooleanArray:
        inside = pc.and_kleene(above(batch), below(batch))
        return pc.invert(inside) if is_negated else inside

    return evaluate


def _in_list(node: Expr, types: Types) -> Kernel | None:
    value, *items = _operands(node)
    dtype = _column_type(value, types)
    constants = [] if dtype is None else [_constant(item, dtype) for item in items]
    if dtype is None or not constants or any(each is None for each in constants):
        return None
    values = _values(value)
    wanted = pa.array([each.as_py() for each in constants if each is not None], dtype)
    is_negated = node.to_variant().negated()

    def evaluate(batch: pa.RecordBatch) -> pa.BooleanArray:
        column = values(batch)
        found = pc.is_in(column, value_set=wanted)
        told = pc.if_else(pc.is_valid(column), found, pa.scalar(None, pa.bool_()))
        return pc.invert(told) if is_negated else told

    return evaluate


def _operands(node: Expr) -> Sequence[Expr]:
    return list(node.rex_call_operands())


def _values(node: Expr) -> Kernel:
    name = node.to_variant().name()
    return lambda batch: batch.column(name)


def _column_type(node: Expr, types: Types) -> pa.DataType | None:
    """Return the type of a column that both evaluate alike."""
    if node.variant_name() != "Column":
        return None
    dtype = types.get(node.to_variant().name())
    if dtype is None:
        return None
    is_plain = pa.types.is_integer(dtype) or pa.types.is_boolean(dtype) or _is_text(dtype)
    return dtype if is_plain else None


def _constant(node: Expr, dtype: pa.DataType) -> pa.Scalar | None:
    """Return a literal as a value of a column's type, if it is of the same kind and fits."""
    if node.variant_name() != "Literal":
        return None
    value = node.python_value()
    if not value.is_valid:
        return None
    if pa.types.is_integer(dtype):
        is_same = pa.types.is_integer(value.type) and fits(value.as_py(), dtype)
    elif pa.types.is_boolean(dtype):
        is_same = pa.types.is_boolean(value.type)
    else:
        is_same = _is_text(value.type)
    return pa.scalar(value.as_py(), dtype) if is_same else None


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))
