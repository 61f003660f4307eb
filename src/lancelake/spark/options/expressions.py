"""Expressions that users pass as SQL text or as columns."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f

from lancelake.errors import InvalidRequestError

Expression = Column | str


def as_column(expression: Expression) -> Column:
    """Return an expression as a column; raise for a value of another type."""
    if isinstance(expression, str):
        return f.expr(expression)
    # Callers are not type-checked: a dict may be passed in the place of a condition.
    given: object = expression
    if not isinstance(given, Column):
        problem = f"{given!r} is not an expression: SQL text or a Column is needed"
        raise InvalidRequestError(problem, found=type(given).__name__)
    return expression
