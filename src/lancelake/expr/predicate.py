"""Predicate of a scan, from SQL text, a pyarrow expression or a condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import InvalidRequestError
from lancelake.expr.arrow_sql import arrow_to_sql
from lancelake.expr.bind import PathOf
from lancelake.expr.condition import Condition, Path, all_of, needs_datafusion, paths_of
from lancelake.expr.condition_sql import condition_sql
from lancelake.expr.evaluate import evaluate
from lancelake.expr.sql_condition import sql_condition
from lancelake.format.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A condition that selects rows, and its text."""

    condition: Condition
    text: str

    @property
    def paths(self) -> tuple[Path, ...]:
        """Columns of the filter."""
        return paths_of(self.condition)

    @property
    def needs_datafusion(self) -> bool:
        """Whether a part is evaluated by DataFusion, which may fail on a value."""
        return needs_datafusion(self.condition)

    def __call__(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return true for rows to keep; null counts as false to callers."""
        return evaluate(self.condition, batch)


Filter: TypeAlias = str | pc.Expression | Predicate
"""A filter of a user, or one that is already parsed."""


def joined(conditions: Sequence[Condition]) -> Predicate | None:
    """Join predicates by AND; None without any."""
    if not conditions:
        return None
    whole = all_of(conditions)
    return Predicate(condition=whole, text=condition_sql(whole))


def predicate(
    filter: Filter,
    schema: Schema,
    arrow_schema: pa.Schema,
    extra: Sequence[str],
    path_of: PathOf | None = None,
) -> Predicate:
    """Parse a user's filter; raise for one that is not a condition."""
    if isinstance(filter, Predicate):
        return filter
    if isinstance(filter, str):
        found = sql_condition(filter, schema, arrow_schema, extra, path_of)
        return Predicate(condition=found, text=filter)
    if isinstance(filter, pc.Expression):
        sql = arrow_to_sql(filter)
        found = sql_condition(sql, schema, arrow_schema, extra, path_of)
        return Predicate(condition=found, text=sql)
    problem = f"a filter is SQL text or a pyarrow expression, not {type(filter).__name__}"
    raise InvalidRequestError(problem)
