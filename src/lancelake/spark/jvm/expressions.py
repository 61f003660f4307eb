"""Convert Java filters, aggregates and sort orders to our own values."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lancelake.expr.condition import Column, Condition
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.spark_conditions import Operand, SparkLiteral, TypeOf, spark_condition

_MANY = 20
_TEXT_TYPES = ("string",)


@dataclass(frozen=True, slots=True)
class JavaExpressions:
    """Converts expressions on the columns of one table."""

    gateway: Gateway
    type_of: TypeOf

    def condition(self, predicate: Any) -> Condition | None:
        """Convert a condition; None if part of it is not supported."""
        name = predicate.name()
        children = predicate.children()
        if name == "IN" and len(children) > _MANY:
            return self._large_membership(predicate, children)
        found = [self.operand(child) for child in children]
        operands = [operand for operand in found if operand is not None]
        return spark_condition(name, operands) if len(operands) == len(found) else None

    def operand(self, expression: Any) -> Operand | None:
        """Convert a column, a literal or a condition."""
        kind = _kind(expression)
        if kind == "FieldReference":
            return self._column(expression)
        if kind == "LiteralValue":
            return _constant(expression)
        if hasattr(expression, "name") and self._is_predicate(expression):
            return self.condition(expression)
        return None

    def column(self, reference: Any) -> Column | None:
        """Convert a reference to a column."""
        return self._column(reference) if _kind(reference) == "FieldReference" else None

    def _column(self, reference: Any) -> Column | None:
        text = str(reference.toString())
        # Text is one call, an array one for each name; only a name without signs is as it is shown.
        path = (text,) if text.isidentifier() else tuple(reference.fieldNames())
        dtype = self.type_of(path)
        return None if dtype is None else Column(path=path, dtype=dtype)

    def _is_predicate(self, expression: Any) -> bool:
        return bool(
            self.gateway.once("class of predicates", self._predicates).isInstance(expression)
        )

    def _predicates(self) -> Any:
        name = "org.apache.spark.sql.connector.expressions.filter.Predicate"
        return self.gateway.member("java.lang.Class", "forName")(name)

    def _large_membership(self, predicate: Any, children: Any) -> Condition | None:
        """Read a long list of literals in one message."""
        column = self.operand(children[0])
        utils = self.gateway.cls("org.apache.spark.sql.internal.connector.PredicateUtils")
        simple = utils.toV1(predicate)
        if not isinstance(column, Column) or simple.isEmpty():
            return None
        pickler = self.gateway.cls("net.razorvine.pickle.Pickler")()
        values = pickle.loads(pickler.dumps(simple.get().values()))  # from our own JVM
        if not all(value is None or type(value) in (int, str, bool) for value in values):
            return None
        literals = [SparkLiteral(value=value) for value in values]
        return spark_condition("IN", [column, *literals])


def _kind(expression: Any) -> str:
    return str(expression.getClass().getSimpleName())


def _constant(literal: Any) -> SparkLiteral | None:
    value, kind = literal.value(), literal.dataType().typeName()
    if value is None or isinstance(value, bool | int | float | bytes | bytearray):
        return SparkLiteral(value=bytes(value) if isinstance(value, bytearray) else value)
    if kind.startswith("decimal"):
        return SparkLiteral(value=Decimal(value.toString()))
    return SparkLiteral(value=value.toString()) if kind in _TEXT_TYPES else None
