"""Filters as values: SQL text, a pyarrow expression, or what a planner found."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from lancelake.expr.bind import BoundExpression
from lancelake.expr.planned import PlannedPredicate


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlPredicate:
    """A filter in SQL."""

    expression: BoundExpression

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """Columns the filter looks at."""
        return self.expression.paths


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowPredicate:
    """A filter as a pyarrow expression."""

    expression: pc.Expression
    paths: tuple[tuple[str, ...], ...]


Predicate = SqlPredicate | ArrowPredicate | PlannedPredicate
