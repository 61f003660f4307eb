"""Evaluation of bound SQL expressions on record batches, by DataFusion."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lancelake.errors import InvalidExpressionError
from lancelake.expr.arrays import (
    at_path,
    may_be_null,
    plain_storage,
    type_at,
    type_without_views,
    without_views,
)
from lancelake.expr.bind import BoundExpression, input_name, no_such_column
from lancelake.expr.condition import PlannedLeaf
from lancelake.expr.conform import conform
from lancelake.expr.json_functions import register_json_functions
from lancelake.expr.threads import datafusion_threads
from lancelake.expr.tokens import shown
from lancelake.format.column_path import join_path

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext
    from datafusion.expr import Expr

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

    def result_field(self, name: str, schema: pa.Schema) -> pa.Field:
        """Return the field of the result for batches of this schema."""
        fields = [
            field.with_nullable(may_be_null(schema, path))
            for field, path in zip(
                input_schema(self._expression, schema), self._expression.paths or ((),), strict=True
            )
        ]
        try:
            found = _result(
                self._expression.sql,
                pa.schema(fields),
                self._target,
                is_condition=self._is_condition,
            )
        except Exception as error:  # DataFusion raises bare Exception
            raise _refused(self._expression, error) from error
        return pa.field(name, type_without_views(found.type), found.nullable)

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the value for each row of a batch."""
        try:
            frame = self._frame(self._inputs(batch))
            parts = [part.column(0) for part in frame.collect()]
            return without_views(_joined(parts, frame.schema().field(0).type))
        except Exception as error:  # DataFusion raises bare Exception
            raise _refused(self._expression, error) from error

    def _frame(self, inputs: pa.RecordBatch) -> DataFrame:
        meant = _understood(
            self._expression.sql, inputs.schema, self._target, is_condition=self._is_condition
        )
        return _context().read_batch(inputs).select(meant)

    def _inputs(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [plain_storage(at_path(batch, path)) for path in self._expression.paths]
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
    found = type_at(schema, path)
    if found is None:
        # The path was resolved, so only a damaged table is left.
        raise ValueError(f"several columns have the name {join_path(path)}")
    return found


def parse(expression: BoundExpression, schema: pa.Schema) -> Expr:
    """Parse an expression over columns of a schema."""
    try:
        return _empty_frame(input_schema(expression, schema)).parse_sql_expr(expression.sql)
    except Exception as error:  # DataFusion raises bare Exception
        raise _refused(expression, error) from error


def fold(expression: Expr) -> pa.Scalar | None:
    """Return the value of an expression without columns; None where it has none."""
    one = pa.RecordBatch.from_arrays([pa.nulls(1)], names=["none"])
    try:
        (part,) = _context().read_batch(one).select(expression.alias("value")).collect()
    except Exception:  # noqa: BLE001  # what is wrong is reported where it is evaluated
        return None
    return without_views(part.column(0))[0]


def evaluate_sql(expression: BoundExpression, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Evaluate a condition in SQL for each row."""
    truth = Evaluator(expression, is_condition=True)(batch)
    return truth.cast(pa.bool_()) if pa.types.is_null(truth.type) else truth


def evaluate_planned(leaf: PlannedLeaf, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Evaluate a condition of a plan for each row."""
    columns = [plain_storage(batch.column(name)) for name in leaf.names]
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
    return _joined(parts, pa.bool_())


@functools.lru_cache(maxsize=_UNDERSTOOD)
def _empty_frame(schema: pa.Schema) -> DataFrame:
    return _context().read_batch(pa.RecordBatch.from_pylist([], schema=schema))


@functools.cache
def _context() -> SessionContext:
    datafusion_threads.started()
    context = _new_context()
    register_json_functions(context)
    return context


def _new_context() -> SessionContext:
    from datafusion import SessionConfig, SessionContext  # noqa: PLC0415  # loads pandas, too

    return SessionContext(SessionConfig().with_target_partitions(1))


def _joined(parts: Sequence[pa.Array], dtype: pa.DataType) -> pa.Array:
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
