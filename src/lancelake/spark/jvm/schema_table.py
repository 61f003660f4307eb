"""A table with only a schema, for Spark's analysis of a write."""

from __future__ import annotations

from typing import Any

from pyspark.sql import types as t

from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import TableProxy
from lancelake.spark.jvm.python_read import java_schema


class SchemaTable(TableProxy):
    """Columns only; nothing is ever written through it."""

    class Java:
        """Interfaces for Py4J."""

        implements = ("org.apache.spark.sql.connector.catalog.Table",)

    def __init__(self, gateway: Gateway, schema: t.StructType, name: str) -> None:
        super().__init__(gateway)
        self._schema, self._name = schema, name

    def name(self) -> str:
        return self._name

    def schema(self) -> Any:
        return java_schema(self.gateway, self._schema)

    def capabilities(self) -> Any:
        return self.gateway.set([self.gateway.connector("catalog.TableCapability").BATCH_WRITE])
