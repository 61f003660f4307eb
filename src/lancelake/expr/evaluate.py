"""Evaluation of conditions and expressions, by Arrow where it can, else by DataFusion.

A number takes the type of the column it is compared with, so that `x = 0.1` finds 0.1 in a column
of 32-bit floats. `regexp_match` as a condition is true where something matches.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import InvalidExpressionError
from lancelake.expr import literals
from lancelake.expr.bind import BoundExpression, input_name, no_such_column
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
from lancelake.expr.json_functions import register_json_functions
from lancelake.expr.planned_condition import chain, operands
from lancelake.expr.structure import register_size_limits, shown
from lancelake.format.schema import join_path
from lancelake.threads import NativeThreads, driven_aside

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext
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
                return _join_column(parts, _JOINS[name])
            return _conform_binary(node, name, types)
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


def _conform_binary(node: Expr, name: str, types: Mapping[str, pa.DataType]) -> Expr:
    if name not in _OPERATORS:
        return node
    left, right = operands(node)
    return _OPERATORS[name](
        _typed(left, _type_of(right, types)), _typed(right, _type_of(left, types))
    )


def _join_column(parts: Sequence[Expr], join: Callable[[Expr, Expr], Expr]) -> Expr:
    """Join in a balanced tree, because planning takes quadratic time for a deep one."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return join(_join_column(parts[:middle], join), _join_column(parts[middle:], join))


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
        return node.cast(target) if literals.fits(number.as_py(), target) else node
    return node


datafusion_threads = NativeThreads("DataFusion's sorting and SQL")
"""Marked as started by every evaluation, since that starts them as well."""


_UNDERSTOOD = 256
# Positions in the rewritten text, which users do not know.
_PLACE = re.compile(r" at Line: \d+, Column: \d+")
# An error of a registered function, as DataFusion prints it.
_RAISED = re.compile(r"PyErr \{ type: [^,]*, value: \w+\((['\"])(.*)\1\), traceback")
_UNKNOWN_FIELD = re.compile(r"No field named (\S+?)\.(?:\s|$)")


class Evaluator:
    """Evaluator of one expression."""

    def __init__(
        self,
        expression: BoundExpression,
        *,
        is_condition: bool = False,
        target: pa.DataType | None = None,
    ) -> None:
        """Prepare an expression or a condition; with a target, values are cast to it."""
        self._expression = expression
        self._is_condition = is_condition
        self._target = target

    @driven_aside
    def result_field(self, name: str, schema: pa.Schema) -> pa.Field:
        """Return the field of the result for batches of this schema."""
        fields = [
            field.with_nullable(literals.may_be_null(schema, path))
            for field, path in zip(
                input_schema(self._expression, schema), self._expression.paths or ((),), strict=True
            )
        ]
        try:
            result = _result(
                self._expression.sql,
                pa.schema(fields),
                self._target,
                is_condition=self._is_condition,
            )
        except Exception as error:  # DataFusion raises bare Exception
            raise _refused(self._expression, error) from error
        return pa.field(name, literals.type_without_views(result.type), result.nullable)

    @driven_aside
    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the value for each row of a batch."""
        try:
            frame = self._frame(self._inputs(batch))
            parts = [part.column(0) for part in frame.collect()]
            return literals.without_views(_join_parts(parts, frame.schema().field(0).type))
        except Exception as error:  # DataFusion raises bare Exception
            raise _refused(self._expression, error) from error

    def _frame(self, inputs: pa.RecordBatch) -> DataFrame:
        meant = _understood(
            self._expression.sql, inputs.schema, self._target, is_condition=self._is_condition
        )
        return _context().read_batch(inputs).select(meant)

    def _inputs(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            literals.plain_storage(literals.at_path(batch, path)) for path in self._expression.paths
        ]
        names = [input_name(i) for i in range(len(columns))]
        if not columns:
            # A batch needs a column to have a length.
            columns, names = [pa.nulls(batch.num_rows)], [input_name(0)]
        return pa.RecordBatch.from_arrays(columns, names=names)


@functools.lru_cache(maxsize=_UNDERSTOOD)
def _understood(
    sql: str, schema: pa.Schema, target: pa.DataType | None, *, is_condition: bool
) -> Expr:
    """Parse an expression over inputs of this schema, cached for the tasks of a scan."""
    frame = _empty_frame(schema)

    def type_of(node: Expr) -> pa.DataType:
        return frame.select(node).schema().field(0).type

    meant = conform(frame.parse_sql_expr(sql), schema, type_of, is_condition=is_condition)
    return (meant if target is None else meant.cast(target)).alias("value")


@functools.lru_cache(maxsize=_UNDERSTOOD)
def _result(
    sql: str, schema: pa.Schema, target: pa.DataType | None, *, is_condition: bool
) -> pa.Field:
    """Evaluate an expression without rows, and return its field."""
    meant = _understood(sql, schema, target, is_condition=is_condition)
    frame = _empty_frame(schema).select(meant)
    frame.collect()  # finds errors that planning does not, such as invalid numbers
    return frame.schema().field(0)


def input_schema(expression: BoundExpression, schema: pa.Schema) -> pa.Schema:
    """Return the schema of an expression's inputs for batches of a schema."""
    types = [_input_type(schema, path) for path in expression.paths] or [pa.null()]
    return pa.schema([(input_name(i), dtype) for i, dtype in enumerate(types)])


def _input_type(schema: pa.Schema, path: Sequence[str]) -> pa.DataType:
    dtype = literals.type_at(schema, path)
    if dtype is None:
        # The path was resolved, so only a damaged table is left.
        raise ValueError(f"several columns have the name {join_path(path)}")
    return dtype


@driven_aside
def parse(expression: BoundExpression, schema: pa.Schema) -> Expr:
    """Parse an expression over columns of a schema."""
    try:
        return _empty_frame(input_schema(expression, schema)).parse_sql_expr(expression.sql)
    except Exception as error:  # DataFusion raises bare Exception
        raise _refused(expression, error) from error


@driven_aside
def fold(expression: Expr) -> pa.Scalar | None:
    """Return the value of an expression without columns; None where it has none."""
    one = pa.RecordBatch.from_arrays([pa.nulls(1)], names=["none"])
    try:
        (part,) = _context().read_batch(one).select(expression.alias("value")).collect()
    except Exception:  # noqa: BLE001  # what is wrong is reported where it is evaluated
        return None
    return literals.without_views(part.column(0))[0]


def evaluate_sql(expression: BoundExpression, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Evaluate a condition in SQL for each row."""
    truth = Evaluator(expression, is_condition=True)(batch)
    return truth.cast(pa.bool_()) if pa.types.is_null(truth.type) else truth


@driven_aside
def evaluate_planned(leaf: PlannedLeaf, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Evaluate a condition of a plan for each row."""
    columns = [literals.plain_storage(batch.column(name)) for name in leaf.names]
    # A batch needs a column to have a length.
    columns, names = (columns, leaf.names) if columns else ([pa.nulls(batch.num_rows)], ("none",))
    rows = pa.RecordBatch.from_arrays(columns, names=list(names))
    context = _new_context()
    context.register_record_batches(leaf.table, [[rows]])
    try:
        parts = [
            part.column(0) for part in context.table(leaf.table).select(leaf.expression).collect()
        ]
    except Exception as error:  # DataFusion raises bare Exception
        text = leaf.expression.canonical_name()
        msg = f"condition {text} cannot be evaluated: {reason(str(error))}"
        raise InvalidExpressionError(msg, text=text) from error
    return _join_parts(parts, pa.bool_())


@functools.lru_cache(maxsize=_UNDERSTOOD)
def _empty_frame(schema: pa.Schema) -> DataFrame:
    return _context().read_batch(pa.RecordBatch.from_pylist([], schema=schema))


@functools.cache
def _context() -> SessionContext:
    datafusion_threads.started()
    context = _new_context()
    register_json_functions(context)
    register_size_limits(context)
    return context


def _new_context() -> SessionContext:
    from datafusion import SessionConfig, SessionContext  # noqa: PLC0415  # loads pandas, too

    return SessionContext(SessionConfig().with_target_partitions(1))


def _join_parts(parts: Sequence[pa.Array], dtype: pa.DataType) -> pa.Array:
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts) if parts else pa.array([], dtype)


def reason(text: str) -> str:
    """Return the innermost cause of a DataFusion error, without lists of functions."""
    raised = _RAISED.search(text)
    if raised is not None:
        return raised[2].rstrip(".")
    cause = text.rpartition("caused by\n")[2].partition("Candidate functions:")[0]
    words = _PLACE.sub("", cause.removeprefix("DataFusion error: ")).split()
    return " ".join(words).rstrip(".")


def _refused(expression: BoundExpression, error: Exception) -> InvalidExpressionError:
    unknown = _UNKNOWN_FIELD.search(str(error))
    if unknown is not None:
        return no_such_column(unknown[1], expression.text, expression.known)
    text = shown(expression.text)
    problem = f"expression {text!r} cannot be evaluated: {shown(reason(str(error)))}"
    return InvalidExpressionError(problem, text=text)


_INTEGERS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def total_order(values: pa.Array, *, has_one_zero: bool = False) -> pa.Array:
    """Return integers that are ordered as floating-point numbers are; nulls stay null.

    Numbers have the same integer if all their bits are equal, and with `has_one_zero` both zeros.
    """
    width = values.type.bit_width
    bits = values.view(_INTEGERS[width])
    raw = (pc.fill_null(bits, 0) if bits.null_count else bits).to_numpy()
    # All bits of a negative number but the sign are flipped.
    keys = raw ^ ((raw >> (width - 1)) & ((1 << (width - 1)) - 1))
    if has_one_zero:
        keys = np.where(keys == -1, np.zeros_like(keys), keys)
    mask = pc.is_null(values).to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(keys, _INTEGERS[width], mask=mask)


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
    return literals.plain_storage(literals.at_path(batch, column.path))


def _compared(condition: Comparison, values: pa.Array) -> pa.BooleanArray:
    compare, constant = _COMPARISONS[condition.operator], condition.value
    if not literals.is_float(condition.column.dtype):
        return compare(values, constant)
    if not pc.is_nan(constant).as_py() and not _has_nan(values):
        return compare(values, constant)
    constants = pa.array([constant], condition.column.dtype)
    return compare(_ranked(values), _ranked(constants)[0])


def _membership(condition: Membership, values: pa.Array) -> pa.BooleanArray:
    wanted = condition.values
    if literals.is_float(condition.column.dtype):
        # Arrow looks zeros up by their bits, and takes every NaN for the same.
        values, wanted = _ranked(values), _ranked(wanted)
    is_member = pc.is_in(values, value_set=wanted)
    unknown = pa.scalar(None, pa.bool_())
    if condition.has_null:
        return pc.if_else(is_member, is_member, unknown)
    if not values.null_count:
        return is_member
    return pc.if_else(pc.is_valid(values), is_member, unknown)


def _has_nan(values: pa.Array) -> bool:
    return bool(pc.any(pc.is_nan(values)).as_py())


def _ranked(values: pa.Array) -> pa.Array:
    """Return integers that compare as numbers do in conditions."""
    return total_order(values, has_one_zero=True)
