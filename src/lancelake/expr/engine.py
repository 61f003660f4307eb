"""Evaluation of bound SQL expressions on record batches, by DataFusion."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from lancelake.errors import InvalidExpressionError
from lancelake.expr.arrays import at_path, plain_storage, without_views
from lancelake.expr.bind import BoundExpression, input_name, no_such_column

_UNKNOWN_FIELD = re.compile(r"No field named (\S+?)\.(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Computes one expression; usable from one thread at a time."""

    expression: BoundExpression
    _context: SessionContext

    @staticmethod
    def of(expression: BoundExpression) -> Evaluator:
        """Prepare an expression."""
        config = SessionConfig().with_target_partitions(1)
        return Evaluator(expression, SessionContext(config))

    def result_type(self, schema: pa.Schema) -> pa.DataType:
        """Return the type of the result for batches of this schema."""
        arrays = [pa.array([], field.type) for field in schema]
        return self(pa.RecordBatch.from_arrays(arrays, schema=schema)).type

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the value for each row of a batch."""
        inputs = self._inputs(batch)
        try:
            frame = self._context.read_batch(inputs).select_exprs(f"({self.expression.sql}) AS v")
            parts = [part.column(0) for part in frame.collect()]
            return without_views(_joined(parts, frame.schema().field(0).type))
        except Exception as error:  # DataFusion raises bare Exception
            raise _refused(self.expression, error) from error

    def _inputs(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [plain_storage(at_path(batch, path)) for path in self.expression.paths]
        names = [input_name(i) for i in range(len(columns))]
        if not columns:
            # A batch needs a column to have a length.
            columns, names = [pa.nulls(batch.num_rows)], ["none"]
        return pa.RecordBatch.from_arrays(columns, names=names)


def _joined(parts: Sequence[pa.Array], dtype: pa.DataType) -> pa.Array:
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts) if parts else pa.array([], dtype)


def _refused(expression: BoundExpression, error: Exception) -> InvalidExpressionError:
    unknown = _UNKNOWN_FIELD.search(str(error))
    if unknown is not None:
        return no_such_column(unknown[1], expression.text, expression.known)
    reason = str(error).strip().splitlines()[-1].removeprefix("DataFusion error: ")
    for position, path in enumerate(expression.paths):
        reason = reason.replace(f"?table?.{input_name(position)}", ".".join(path))
    problem = f"expression {expression.text!r} cannot be evaluated: {reason}"
    return InvalidExpressionError(problem, text=expression.text)
