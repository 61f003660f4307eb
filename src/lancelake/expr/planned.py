"""Pushdown of filters of a query plan to a scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from lancelake.expr.arrays import plain_type, type_at
from lancelake.expr.condition import Column, Condition, PlannedLeaf, all_of
from lancelake.expr.engine import fold
from lancelake.expr.planned_condition import Translator, chain
from lancelake.expr.predicate import Predicate

# Not pushed down: volatile functions and subqueries.
_NOT_AHEAD = ("random()", "uuid()", "subquery>")


@dataclass(frozen=True, kw_only=True)
class PlannedFilter:
    """Conditions of a plan that a scan can evaluate."""

    predicate: Predicate
    is_complete: bool
    """Whether these are all conditions of the plan."""


def planned(conditions: Sequence[Expr], table: str, schema: pa.Schema) -> PlannedFilter | None:
    """Join the conditions that can be evaluated on rows of the table alone; None without any."""
    parts = [part for condition in conditions for part in chain(condition, "AND")]
    known = [part for part in parts if _columns(part, table, schema)]
    if not known:
        return None
    found = all_of([_condition(part, table, schema) for part in known])
    text = " AND ".join(part.canonical_name() for part in known)
    predicate = Predicate(condition=found, text=text)
    return PlannedFilter(predicate=predicate, is_complete=len(known) == len(parts))


def table_scans(plan: LogicalPlan) -> list[tuple[LogicalPlan, ...]]:
    """Return each scan of a table in a plan, behind the nodes that lead to it from the root."""
    below = [trail for node in plan.inputs() for trail in table_scans(node)]
    if not below:
        return [(plan,)] if _kind(plan) == "TableScan" else []
    return [(plan, *trail) for trail in below]


def _condition(expression: Expr, table: str, schema: pa.Schema) -> Condition:
    def column(name: str) -> Column | None:
        dtype = type_at(schema, (name,))
        return None if dtype is None else Column(path=(name,), dtype=dtype)

    def other(node: Expr) -> Condition:
        names = tuple(_columns(node, table, schema))
        return PlannedLeaf(expression=node, table=table, names=names)

    return Translator(column=column, other=other, fold=fold).condition(expression)


def _columns(expression: Expr, table: str, schema: pa.Schema) -> list[str]:
    """Return the columns an expression looks at; none where it cannot be evaluated on rows."""
    text = expression.canonical_name()
    if any(name in text for name in _NOT_AHEAD):
        return []
    columns = [pa.array([], plain_type(field.type)) for field in schema]
    batch = pa.RecordBatch.from_arrays(columns, names=schema.names)
    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.register_record_batches(table, [[batch]])
    try:
        frame = context.table(table).select(expression)
        frame.collect()
        scans = table_scans(frame.optimized_logical_plan())
    except Exception:  # noqa: BLE001  # DataFusion raises bare Exception
        return []
    return [name for scan in scans for _, name in scan[-1].to_variant().projection()]


def _kind(plan: LogicalPlan) -> str:
    return type(plan.to_variant()).__name__
