"""A stored procedure in Spark's connector API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from lancelake.errors import InternalError, InvalidRequestError
from lancelake.spark.catalog.procedures import Parameter, Procedure, Results
from lancelake.spark.catalog.result_rows import ResultRow
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import Proxy, ScanProxy, implements
from lancelake.spark.jvm.python_read import java_schema
from lancelake.spark.options.table_options import TableOptions

_ROW = "org.apache.spark.sql.catalyst.expressions.GenericInternalRow"
_TEXT = "org.apache.spark.unsafe.types.UTF8String"


class _Described(Proxy):
    """Name and description of a procedure."""

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


@implements("catalog.procedures.UnboundProcedure")
class LanceProcedure(_Described):
    """A procedure before its arguments are bound.

    It is not bound itself: Spark would convert the types of arguments that it has not yet matched
    with the parameters.
    """

    def bind(self, types: Any) -> Any:  # noqa: ARG002
        return _BoundProcedure(self.gateway, self._procedure, self._table_named)


@implements("catalog.procedures.BoundProcedure")
class _BoundProcedure(_Described):
    """Runs on the driver, and may start jobs."""

    def identity(self) -> str:
        # A plan with a procedure of the same identity would count as unchanged by the binding.
        return f"bound {super().identity()}"

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
        scans.add(self._scan(answer))
        return scans.iterator()

    def _scan(self, answer: Results) -> Any:
        if isinstance(answer, DataFrame):
            return _FrameAnswer(self.gateway, answer)
        if self._procedure.answer is None:
            raise InternalError(f"procedure {self._procedure.name} has no schema")
        return _Answer(self.gateway, self._procedure.answer, answer)

    def _parameter(self, kind: Any, parameter: Parameter) -> Any:
        schema = t.StructType([t.StructField("x", parameter.dtype)])
        dtype = java_schema(self.gateway, schema).apply("x").dataType()
        builder = getattr(kind, "in")(parameter.name, dtype)
        if parameter.default is not None:
            builder = builder.defaultValue(parameter.default)
        return builder.build()


@implements("read.LocalScan")
class _Answer(ScanProxy):
    def __init__(
        self, gateway: Gateway, schema: t.StructType, answer: ResultRow | Sequence[ResultRow]
    ) -> None:
        super().__init__(gateway)
        self._schema, self._answer = schema, answer

    def readSchema(self) -> Any:
        return java_schema(self.gateway, self._schema)

    def rows(self) -> Any:
        answer = self._answer
        every = [answer] if isinstance(answer, Mapping) else answer
        kind = self.gateway.cls("org.apache.spark.sql.catalyst.InternalRow")
        return self.gateway.array(kind, [self._row(one) for one in every])

    def _row(self, answer: ResultRow) -> Any:
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


@implements("read.LocalScan")
class _FrameAnswer(ScanProxy):
    """The rows of a frame, which the driver holds."""

    def __init__(self, gateway: Gateway, frame: DataFrame) -> None:
        super().__init__(gateway)
        self._frame = frame

    def readSchema(self) -> Any:
        return self._frame._jdf.schema()

    def rows(self) -> Any:
        return self._frame._jdf.queryExecution().executedPlan().executeCollect()


def _value(row: Any, position: int, parameter: Parameter) -> Any:
    if row.isNullAt(position):
        return None
    match parameter.dtype:
        case t.BooleanType():
            return row.getBoolean(position)
        case t.LongType():
            return row.getLong(position)
        case t.DoubleType():
            return row.getDouble(position)
        case t.ArrayType(elementType=t.DoubleType()):
            return _numbers(row.getArray(position), parameter)
        case _:
            return row.getUTF8String(position).toString()


def _numbers(array: Any, parameter: Parameter) -> list[float]:
    if any(array.isNullAt(place) for place in range(array.numElements())):
        raise InvalidRequestError(f"argument {parameter.name} must not contain nulls")
    return list(array.toDoubleArray())
