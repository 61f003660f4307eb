"""Expressions that users pass as SQL text or as columns."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f

Expression = Column | str


def as_column(expression: Expression) -> Column:
    """Return an expression as a column."""
    return f.expr(expression) if isinstance(expression, str) else expression
