"""Filters that a query planner found, evaluated by DataFusion as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.expr import Expr
from datafusion.plan import LogicalPlan

from lancelake.errors import InvalidExpressionError
from lancelake.expr.arrays import plain_storage
from lancelake.expr.engine import reason

# What must not be evaluated ahead: functions that give another value each time, and queries.
_NOT_AHEAD = ("random()", "uuid()", "subquery>")


@dataclass(frozen=True, eq=False)
class PlannedPredicate:
    """A condition of DataFusion over the columns of a table; it stays within the process."""

    expression: Expr
    table: str
    paths: tuple[tuple[str, ...], ...]
    is_complete: bool = True
    """Whether it stands for all the conditions that were given, not only for some."""

    @property
    def text(self) -> str:
        """The condition in DataFusion's words."""
        return str(self.expression.canonical_name())

    def __call__(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """Return the truth for each row of a batch that has the columns."""
        columns = [plain_storage(batch.column(name)) for (name,) in self.paths]
        try:
            return _evaluated(self.expression, self.table, columns, self._names)
        except Exception as error:  # DataFusion raises bare Exception
            msg = f"condition {self.text} cannot be evaluated: {reason(str(error))}"
            raise InvalidExpressionError(msg, text=self.text) from error

    @property
    def _names(self) -> list[str]:
        return [name for (name,) in self.paths]


def planned(conditions: Sequence[Expr], table: str, schema: pa.Schema) -> PlannedPredicate | None:
    """Join the conditions that can be evaluated on rows of the table alone; None without any."""
    parts = [part for condition in conditions for part in _conjuncts(condition)]
    found = [part for part in parts if _columns(part, table, schema)]
    if not found:
        return None
    whole = _predicate(_joined(found), table, schema)
    return replace(whole, is_complete=len(found) == len(parts))


def any_of(predicates: Sequence[PlannedPredicate], schema: pa.Schema) -> PlannedPredicate:
    """Return a condition that holds wherever one of these holds."""
    first, *rest = predicates
    either = first.expression
    for other in rest:
        either = either | other.expression
    return _predicate(either, first.table, schema)


def table_scans(plan: LogicalPlan) -> list[tuple[LogicalPlan, ...]]:
    """Return each scan of a table in a plan, behind the nodes that lead to it from the root."""
    below = [trail for node in plan.inputs() for trail in table_scans(node)]
    if not below:
        return [(plan,)] if _kind(plan) == "TableScan" else []
    return [(plan, *trail) for trail in below]


def _predicate(expression: Expr, table: str, schema: pa.Schema) -> PlannedPredicate:
    names = _columns(expression, table, schema)
    return PlannedPredicate(
        expression=expression, table=table, paths=tuple((name,) for name in names)
    )


def _columns(expression: Expr, table: str, schema: pa.Schema) -> list[str]:
    """Return the columns an expression looks at; none where it cannot be evaluated on rows."""
    text = expression.canonical_name()
    if any(name in text for name in _NOT_AHEAD):
        return []
    columns = [pa.array([], plain_type(field.type)) for field in schema]
    try:
        context = _context_with(table, columns, schema.names)
        frame = context.table(table).select(expression)
        frame.collect()
        scans = table_scans(frame.optimized_logical_plan())
    except Exception:  # noqa: BLE001  # DataFusion raises bare Exception
        return []
    return [name for scan in scans for _, name in scan[-1].to_variant().projection()]


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return the storage type of an extension type, any other as it is."""
    return dtype.storage_type if isinstance(dtype, pa.BaseExtensionType) else dtype


def _evaluated(
    expression: Expr, table: str, columns: list[pa.Array], names: list[str]
) -> pa.BooleanArray:
    frame = _context_with(table, columns, names).table(table).select(expression)
    parts = [part.column(0) for part in frame.collect()]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.bool_())


def _context_with(table: str, columns: list[pa.Array], names: list[str]) -> SessionContext:
    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.register_record_batches(table, [[pa.RecordBatch.from_arrays(columns, names=names)]])
    return context


def _conjuncts(condition: Expr) -> list[Expr]:
    if condition.variant_name() == "BinaryExpr" and condition.rex_call_operator() == "AND":
        return [part for side in condition.rex_call_operands() for part in _conjuncts(side)]
    return [condition]


def _joined(parts: Sequence[Expr]) -> Expr:
    joined, *rest = parts
    for part in rest:
        joined = joined & part
    return joined


def _kind(plan: LogicalPlan) -> str:
    return type(plan.to_variant()).__name__
