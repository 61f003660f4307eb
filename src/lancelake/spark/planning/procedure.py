"""A stored procedure in Spark's connector API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import types as t

from lancelake.errors import InvalidRequestError
from lancelake.spark.catalog.procedures import Answer, Answers, Parameter, Procedure
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import Proxy, ScanProxy, implements
from lancelake.spark.jvm.python_read import java_schema
from lancelake.spark.options.table_options import TableOptions

_ROW = "org.apache.spark.sql.catalyst.expressions.GenericInternalRow"
_TEXT = "org.apache.spark.unsafe.types.UTF8String"


@implements("catalog.procedures.UnboundProcedure", "catalog.procedures.BoundProcedure")
class LanceProcedure(Proxy):
    """Runs on the driver, and may start jobs."""

    def __init__(
        self, gateway: Gateway, procedure: Procedure, table_named: Callable[[str], TableOptions]
    ) -> None:
        super().__init__(gateway)
        self._procedure, self._table_named = procedure, table_named

    def identity(self) -> str:
        return f"lance procedure {self._procedure.name}"

    def name(self) -> str:
        return self._procedure.name

    def description(self) -> str:
        return f"{self._procedure.name}: {self._procedure.text}"

    def bind(self, types: Any) -> Any:  # noqa: ARG002
        return self

    def isDeterministic(self) -> bool:
        return False

    def parameters(self) -> Any:
        kind = self.gateway.connector("catalog.procedures.ProcedureParameter")
        found = [self._parameter(kind, p) for p in self._procedure.parameters]
        return self.gateway.array(kind, found)

    def call(self, row: Any) -> Any:
        given: dict[str, Any] = {}
        for position, parameter in enumerate(self._procedure.parameters):
            given[parameter.name] = _value(row, position, parameter)
            if given[parameter.name] is None and parameter.default is None:
                raise InvalidRequestError(f"argument {parameter.name} must not be null")
        table = self._table_named(given.pop("table"))
        answer = self._procedure.run(self.gateway.spark, table, given)
        scans = self.gateway.cls("java.util.ArrayList")()
        scans.add(_Answer(self.gateway, self._procedure.answer, answer))
        return scans.iterator()

    def _parameter(self, kind: Any, parameter: Parameter) -> Any:
        schema = t.StructType([t.StructField("x", parameter.dtype)])
        dtype = java_schema(self.gateway, schema).apply("x").dataType()
        builder = getattr(kind, "in")(parameter.name, dtype)
        if parameter.default is not None:
            builder = builder.defaultValue(parameter.default)
        return builder.build()


@implements("read.LocalScan")
class _Answer(ScanProxy):
    def __init__(self, gateway: Gateway, schema: t.StructType, answer: Answers) -> None:
        super().__init__(gateway)
        self._schema, self._answer = schema, answer

    def readSchema(self) -> Any:
        return java_schema(self.gateway, self._schema)

    def rows(self) -> Any:
        answer = self._answer
        every = [answer] if isinstance(answer, Mapping) else answer
        kind = self.gateway.cls("org.apache.spark.sql.catalyst.InternalRow")
        return self.gateway.array(kind, [self._row(one) for one in every])

    def _row(self, answer: Answer) -> Any:
        row = self.gateway.cls(_ROW)(len(self._schema.fields))
        for position, field in enumerate(self._schema.fields):
            value = answer[field.name]
            if value is None:
                row.setNullAt(position)
            elif isinstance(value, str):
                row.update(position, self.gateway.cls(_TEXT).fromString(value))
            elif isinstance(value, bool):
                row.setBoolean(position, value)
            else:
                row.setLong(position, value)
        return row


def _value(row: Any, position: int, parameter: Parameter) -> Any:
    if row.isNullAt(position):
        return None
    match parameter.dtype:
        case t.BooleanType():
            return row.getBoolean(position)
        case t.LongType():
            return row.getLong(position)
        case _:
            return row.getUTF8String(position).toString()
