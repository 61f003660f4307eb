"""Convert Java filters, aggregates and sort orders to our own values."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lancelake.expr.condition import Column, Condition
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.plan_calls import described, described_alone
from lancelake.spark.jvm.spark_conditions import Operand, SparkLiteral, TypeOf, spark_condition


@dataclass(frozen=True, slots=True)
class JavaExpressions:
    """Converts expressions on the columns of one table."""

    gateway: Gateway
    type_of: TypeOf

    def condition(self, predicate: Any) -> Condition | None:
        """Convert a condition; None if part of it is not supported."""
        return self._condition(described_alone(self.gateway, predicate))

    def conditions(self, predicates: Any, most: int | None = None) -> list[Condition | None]:
        """Convert an array of conditions, those with more than `most` children to None."""
        return [self._condition(each) for each in described(self.gateway, predicates, most)]

    def column(self, reference: Any) -> Column | None:
        """Convert a reference to a column."""
        if str(reference.getClass().getSimpleName()) != "FieldReference":
            return None
        text = str(reference.toString())
        # Text is one call, an array one for each name; only a name without signs is as it is shown.
        path = (text,) if text.isidentifier() else tuple(reference.fieldNames())
        return self._column(path)

    def _column(self, path: tuple[str, ...]) -> Column | None:
        dtype = self.type_of(path)
        return None if dtype is None else Column(path=path, dtype=dtype)

    def _condition(self, told: Any) -> Condition | None:
        kind, *rest = told
        if kind != "condition":
            return None
        name, children = rest
        found = [self._operand(child) for child in children]
        operands = [operand for operand in found if operand is not None]
        return spark_condition(name, operands) if len(operands) == len(found) else None

    def _operand(self, told: Any) -> Operand | None:
        """Convert a column, a literal or a condition as Java describes it."""
        if not isinstance(told, tuple):
            return SparkLiteral(value=bytes(told) if isinstance(told, bytearray) else told)
        kind, *rest = told
        match kind:
            case "column":
                return self._column(tuple(rest[0]))
            case "float":
                return SparkLiteral(value=float(rest[0]))
            case "decimal":
                return SparkLiteral(value=Decimal(rest[0]))
            case _:
                return self._condition(told)
