"""Which rows of a batch a filter keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import InvalidExpressionError, InvalidRequestError
from lancelake.expr import bind
from lancelake.expr.engine import Evaluator
from lancelake.expr.planned import PlannedPredicate
from lancelake.expr.predicate import ArrowPredicate, Predicate, SqlPredicate
from lancelake.format.schema import Schema

_ROW = "__row"


class RowFilter:
    """Finds the rows of a batch that a predicate keeps."""

    def __init__(self, predicate: Predicate) -> None:
        self._predicate = predicate
        self._evaluate: Evaluator | None = None
        if isinstance(predicate, SqlPredicate):
            self._evaluate = Evaluator(predicate.expression, is_condition=True)

    def __call__(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return true for rows to keep; null counts as false to callers."""
        if isinstance(self._predicate, ArrowPredicate):
            return _arrow_mask(batch, self._predicate.expression)
        if isinstance(self._predicate, PlannedPredicate):
            return self._predicate(batch)
        assert self._evaluate is not None  # set for SQL in the constructor
        return self._evaluate(batch)


def predicate(
    filter: str | pc.Expression | PlannedPredicate,
    schema: Schema,
    arrow_schema: pa.Schema,
    extra: Sequence[str],
) -> Predicate:
    """Understand a filter as users give it, and refuse one that is not a condition."""
    if isinstance(filter, PlannedPredicate):
        return filter
    if isinstance(filter, str):
        return condition(bind.bind(filter, schema, extra_names=extra), arrow_schema)
    if isinstance(filter, pc.Expression):
        return _arrow_predicate(filter, arrow_schema)
    problem = f"a filter is SQL text or a pyarrow expression, not {type(filter).__name__}"
    raise InvalidRequestError(problem)


def condition(bound: bind.BoundExpression, arrow_schema: pa.Schema) -> SqlPredicate:
    """Return the predicate of an expression, and refuse one whose values are not boolean."""
    dtype = Evaluator(bound, is_condition=True).result_field("filter", arrow_schema).type
    if not pa.types.is_boolean(dtype):
        problem = f"the filter {bound.text} does not return a boolean but {dtype}"
        raise InvalidExpressionError(problem, text=bound.text)
    return SqlPredicate(expression=bound)


def _arrow_predicate(expression: pc.Expression, schema: pa.Schema) -> ArrowPredicate:
    # pyarrow does not tell which fields an expression names; every one it names is in its text,
    # unless it is meant by its position.
    text = str(expression)
    by_position = "FieldPath(" in text
    paths = tuple((name,) for name in schema.names if by_position or name in text)
    needed = pa.schema([schema.field(name) for (name,) in paths])
    arrays = [pa.array([], field.type) for field in needed]
    _arrow_mask(pa.RecordBatch.from_arrays(arrays, schema=needed), expression)
    return ArrowPredicate(expression=expression, paths=paths)


def _arrow_mask(batch: pa.RecordBatch, expression: pc.Expression) -> pa.BooleanArray:
    rows = pa.array(np.arange(batch.num_rows))
    table = pa.Table.from_batches([batch]).append_column(_ROW, rows)
    try:
        kept = table.filter(expression).column(_ROW)
    except (pa.ArrowException, TypeError) as error:
        problem = f"filter {expression} cannot be evaluated: {error}"
        raise InvalidExpressionError(problem, text=str(expression)) from error
    mask = np.zeros(batch.num_rows, dtype=np.bool_)
    mask[kept.to_numpy()] = True
    return pa.array(mask)
