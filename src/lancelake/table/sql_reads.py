"""Conditions and limits that a query plan pushes down to reads of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from datafusion.expr import Expr, Filter, Limit
from datafusion.plan import LogicalPlan

from lancelake.expr.condition import any_of
from lancelake.expr.planned import planned
from lancelake.expr.predicate import Predicate

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
        found = planned(_filters(above) if is_free else [], table, schema)
        conditions += [] if found is None else [found.predicate]
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
    found: list[Expr] = []
    for node in reversed(above):
        if not isinstance(node, Filter):
            break
        found.append(Expr(node.predicate()))
    return found


def _lets_all_pass(node: object) -> bool:
    if not isinstance(node, Limit):
        return False
    skip, fetch = Expr(node.skip()).canonical_name(), Expr(node.fetch()).canonical_name()
    return (skip, fetch) == ("Int64(0)", f"Int64({ALL_ROWS})")


def _limit(fetch: int | None) -> int | None:
    return None if fetch is None or fetch >= ALL_ROWS else fetch
