"""The casts of Spark's analysis of a write."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from lancelake.spark.jvm.catalyst import frame as frame_of
from lancelake.spark.jvm.gateway import Gateway, guard
from lancelake.spark.jvm.proxy import TableProxy, implements
from lancelake.spark.jvm.python_tasks import java_schema

_APPEND = "org.apache.spark.sql.catalyst.plans.logical.AppendData"
_RELATION = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation"


def assigned(gateway: Gateway, frame: DataFrame, schema: t.StructType, name: str) -> DataFrame:
    """Return the rows of a frame as an append by name would store them in a table.

    Errors are those of Spark, and use the given name of the table.
    """
    table, none = _SchemaTable(gateway, schema, name), gateway.none()
    relation = gateway.member(_RELATION, "create")(table, none, none, gateway.options({}), none)
    append = guard(gateway, lambda: _append(gateway, relation, frame), "append by name")
    state = gateway.session_state()
    mode = getattr(state, "executePlan$default$2")()
    return frame_of(gateway, state.executePlan(append, mode).analyzed().query())


def _append(gateway: Gateway, relation: Any, frame: DataFrame) -> Any:
    cls = gateway.cls(_APPEND)
    methods = gateway.member("java.lang.Class", "forName")(_APPEND).getMethods()
    count = next(int(m.getParameterCount()) for m in methods if m.getName() == "byName")
    # The options of the write, and since 4.2 whether columns may be added.
    defaults = [getattr(cls, f"byName$default${position}")() for position in range(3, count + 1)]
    return cls.byName(relation, frame._jdf.queryExecution().analyzed(), *defaults)


@implements("catalog.Table")
class _SchemaTable(TableProxy):
    """A table with only a schema, for Spark's analysis of a write."""

    def __init__(self, gateway: Gateway, schema: t.StructType, name: str) -> None:
        super().__init__(gateway)
        self._schema, self._name = schema, name

    def name(self) -> str:
        return self._name

    def schema(self) -> Any:
        return java_schema(self.gateway, self._schema)

    def capabilities(self) -> Any:
        return self.gateway.enum_set("catalog.TableCapability", ["BATCH_WRITE"])
