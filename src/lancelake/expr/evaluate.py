"""Evaluation of conditions on record batches, by Arrow's kernels where semantics agree.

Parts that only DataFusion can evaluate come last, and only for rows that are still undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.expr.arrays import at_path, plain_storage
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
    Operator,
    Or,
    PlannedLeaf,
    SqlLeaf,
    TextMatch,
    TextTest,
    Truth,
    needs_datafusion,
)
from lancelake.expr.engine import evaluate_planned, evaluate_sql
from lancelake.expr.float_order import total_order
from lancelake.expr.literals import is_float

_COMPARISONS: dict[Operator, Callable[..., pa.BooleanArray]] = {
    Operator.EQUAL: pc.equal,
    Operator.NOT_EQUAL: pc.not_equal,
    Operator.LESS: pc.less,
    Operator.LESS_EQUAL: pc.less_equal,
    Operator.GREATER: pc.greater,
    Operator.GREATER_EQUAL: pc.greater_equal,
}
_TEXT_TESTS: dict[TextTest, Callable[..., pa.BooleanArray]] = {
    TextTest.STARTS_WITH: pc.starts_with,
    TextTest.ENDS_WITH: pc.ends_with,
    TextTest.CONTAINS: pc.match_substring,
}


def evaluate(condition: Condition, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Evaluate a condition for each row; null where it is unknown."""
    match condition:
        case Not():
            return pc.invert(evaluate(condition.part, batch))
        case And() | Or():
            return _joined(condition, batch)
        case _:
            return _leaf(condition, batch)


def _leaf(condition: Leaf, batch: pa.RecordBatch) -> pa.BooleanArray:
    match condition:
        case Constant():
            return pa.repeat(pa.scalar(condition.truth, pa.bool_()), batch.num_rows)
        case Truth():
            return _values(condition.column, batch)
        case Comparison():
            return _compared(condition, _values(condition.column, batch))
        case ColumnComparison():
            compare = _COMPARISONS[condition.operator]
            return compare(_values(condition.left, batch), _values(condition.right, batch))
        case Membership():
            return _membership(condition, _values(condition.column, batch))
        case IsNull() | IsNan():
            test = pc.is_null if isinstance(condition, IsNull) else pc.is_nan
            return test(_values(condition.column, batch))
        case TextMatch():
            matches = _TEXT_TESTS[condition.test]
            return matches(_values(condition.column, batch), pattern=condition.text)
        case SqlLeaf() | ListMatch():
            return evaluate_sql(condition.expression, batch)
        case PlannedLeaf():
            return evaluate_planned(condition, batch)
        case _:
            assert_never(condition)


def _joined(condition: And | Or, batch: pa.RecordBatch) -> pa.BooleanArray:
    is_and = isinstance(condition, And)
    join = pc.and_kleene if is_and else pc.or_kleene
    slow = [needs_datafusion(part) for part in condition.parts]
    result: pa.BooleanArray | None = None
    for part, is_slow in zip(condition.parts, slow, strict=True):
        if not is_slow:
            truth = evaluate(part, batch)
            result = truth if result is None else join(result, truth)
    for part in (p for p, is_slow in zip(condition.parts, slow, strict=True) if is_slow):
        if result is None:
            result = evaluate(part, batch)
            continue
        decided = pc.fill_null(result if not is_and else pc.invert(result), False)
        result = _with_late(result, decided, part, batch, join)
    assert result is not None  # there is at least one part
    return result


def _with_late(
    result: pa.BooleanArray,
    decided: pa.BooleanArray,
    part: Condition,
    batch: pa.RecordBatch,
    join: Callable[..., pa.BooleanArray],
) -> pa.BooleanArray:
    """Join a part that is evaluated only on rows that are not decided."""
    open_rows = pc.invert(decided)
    left = open_rows.true_count
    if not left:
        return result
    if left == batch.num_rows:
        return join(result, evaluate(part, batch))
    truth = join(result.filter(open_rows), evaluate(part, batch.filter(open_rows)))
    return pc.replace_with_mask(result, open_rows, truth)


def _values(column: Column, batch: pa.RecordBatch) -> pa.Array:
    return plain_storage(at_path(batch, column.path))


def _compared(condition: Comparison, values: pa.Array) -> pa.BooleanArray:
    compare, constant = _COMPARISONS[condition.operator], condition.value
    if not is_float(condition.column.dtype):
        return compare(values, constant)
    if not pc.is_nan(constant).as_py() and not _has_nan(values):
        return compare(values, constant)
    constants = pa.array([constant], condition.column.dtype)
    return compare(_ranked(values), _ranked(constants)[0])


def _membership(condition: Membership, values: pa.Array) -> pa.BooleanArray:
    wanted = condition.values
    if is_float(condition.column.dtype):
        # Arrow looks zeros up by their bits, and takes every NaN for the same.
        values, wanted = _ranked(values), _ranked(wanted)
    found = pc.is_in(values, value_set=wanted)
    unknown = pa.scalar(None, pa.bool_())
    if condition.has_null:
        return pc.if_else(found, found, unknown)
    if not values.null_count:
        return found
    return pc.if_else(pc.is_valid(values), found, unknown)


def _has_nan(values: pa.Array) -> bool:
    return bool(pc.any(pc.is_nan(values)).as_py())


def _ranked(values: pa.Array) -> pa.Array:
    """Return integers that compare as numbers do in conditions."""
    return total_order(values, has_one_zero=True)
