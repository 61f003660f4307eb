"""Pushdown of filters and columns of a query plan to scans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.expr import Expr, Filter, Limit
from datafusion.plan import LogicalPlan

from lancelake.expr.condition import Column, Condition, PlannedLeaf, all_of, any_of
from lancelake.expr.evaluate import fold
from lancelake.expr.literals import plain_type, type_at
from lancelake.expr.planned_condition import Translator, chain
from lancelake.expr.predicate import Predicate
from lancelake.threads import driven_aside

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
    bindable = [part for part in parts if _columns(part, table, schema)]
    if not bindable:
        return None
    combined = all_of([_condition(part, table, schema) for part in bindable])
    text = " AND ".join(part.canonical_name() for part in bindable)
    predicate = Predicate(condition=combined, text=text)
    return PlannedFilter(predicate=predicate, is_complete=len(bindable) == len(parts))


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


@driven_aside
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


ALL_ROWS = (1 << 63) - 1
"""A limit above all row counts; conditions stay above it, where they are found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryReads:
    """Condition on the rows that a query needs, and the number of rows it needs."""

    condition: Predicate | None = None
    limit: int | None = None


def only_read(scan: Sequence[LogicalPlan], table: str, schema: pa.Schema) -> QueryReads | None:
    """Return the requirements of the only read of a query; None if a scan cannot apply them.

    Conditions that the plan has pushed down to the read are evaluated nowhere else, those directly
    above it are evaluated again.
    """
    *above, read = (node.to_variant() for node in scan)
    given = [Expr(raw) for raw in read.filters()]
    must = planned(given, table, schema)
    if given and (must is None or not must.is_complete):
        return None
    may = planned([*given, *_filters(above)], table, schema)
    return QueryReads(condition=None if may is None else may.predicate, limit=_limit(read.fetch()))


def every_read(scans: Sequence[Sequence[LogicalPlan]], table: str, schema: pa.Schema) -> QueryReads:
    """Return the requirements of all reads of a query, each below a limit of `ALL_ROWS`."""
    conditions: list[Predicate] = []
    limits: list[int] = []
    for *nodes, last in scans:
        above = [node.to_variant() for node in nodes]
        limits.append(last.to_variant().fetch() or ALL_ROWS)
        # A condition pushed below a limit of the query would change the result.
        is_free = bool(above) and _lets_all_pass(above.pop())
        filters = planned(_filters(above) if is_free else [], table, schema)
        conditions += [] if filters is None else [filters.predicate]
    is_common = bool(conditions) and len(conditions) == len(scans)
    return QueryReads(
        condition=_either(conditions) if is_common else None,
        limit=_limit(max(limits, default=ALL_ROWS)),
    )


def _either(predicates: Sequence[Predicate]) -> Predicate:
    text = " OR ".join(f"({predicate.text})" for predicate in predicates)
    return Predicate(condition=any_of([p.condition for p in predicates]), text=text)


def _filters(above: Sequence[object]) -> list[Expr]:
    """Return the conditions directly above a read."""
    expressions: list[Expr] = []
    for node in reversed(above):
        if not isinstance(node, Filter):
            break
        expressions.append(Expr(node.predicate()))
    return expressions


def _lets_all_pass(node: object) -> bool:
    if not isinstance(node, Limit):
        return False
    skip, fetch = Expr(node.skip()).canonical_name(), Expr(node.fetch()).canonical_name()
    return (skip, fetch) == ("Int64(0)", f"Int64({ALL_ROWS})")


def _limit(fetch: int | None) -> int | None:
    return None if fetch is None or fetch >= ALL_ROWS else fetch
