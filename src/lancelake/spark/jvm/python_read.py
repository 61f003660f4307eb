"""Run our reader on executors through Spark's classes for Python data sources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import types as t
from pyspark.sql.udf import _wrap_function

from lancelake.spark.jvm.compiled import make as make_compiled
from lancelake.spark.jvm.gateway import CONNECTOR, PYTHON_SOURCE, Gateway, guarded
from lancelake.spark.jvm.plan_calls import metric_values, partitions
from lancelake.spark.worker.on_executors import worker_command
from lancelake.spark.worker.task_messages import Work


def java_schema(gateway: Gateway, schema: t.StructType) -> Any:
    """Return a schema as a Java object."""
    text = schema.json()
    parse = gateway.member("org.apache.spark.sql.types.DataType", "fromJson")
    return gateway.recent(f"schema {text}", lambda: parse(text))


def python_schema(schema: Any) -> t.StructType:
    """Return a schema as a Python object."""
    return t.StructType.fromJson(json.loads(schema.json()))


def v2_columns(gateway: Gateway, schema: Any) -> Any:
    """Return the columns of a schema as connector API objects, in one call to Java."""
    convert = gateway.member(f"{CONNECTOR}.catalog.CatalogV2Util", "structTypeToV2Columns")
    # Since 4.2 there is a second argument; its default is true.
    arguments = (schema,) if gateway.spark.version.startswith("4.1.") else (schema, True)
    return guarded(gateway, lambda: convert(*arguments), "columns")


def input_partitions(gateway: Gateway, payloads: Sequence[bytes]) -> Any:
    """Return Spark's partitions, each with the bytes for the reader on the executor."""
    return guarded(gateway, lambda: partitions(gateway, payloads), "partition of Python sources")


def reader_factory(gateway: Gateway, read: Work, schema: t.StructType) -> Any:
    """Return the factory whose readers call `read` with the bytes of a partition in workers."""
    name = f"reader {read.__module__}.{read.__qualname__} {schema.json()}"
    return gateway.recent(name, lambda: _reader_factory(gateway, read, schema))


def _reader_factory(gateway: Gateway, read: Work, schema: t.StructType) -> Any:
    command = worker_command(read, schema)
    arguments = [python_source(gateway), bytearray(command), java_schema(gateway, schema)]
    columnar = make_compiled(gateway, "ColumnarReaderFactory", *arguments)
    if columnar is not None:
        return columnar
    make = gateway.cls(f"{PYTHON_SOURCE}.PythonPartitionReaderFactory")
    arguments += [gateway.none()] * (_parameters(gateway, make) - len(arguments))
    return guarded(gateway, lambda: make(*arguments), "reader for Python sources")


def python_metrics(gateway: Gateway) -> Any:
    """Return the metrics of Spark's readers of Python data sources."""
    return python_source(gateway).createPythonMetrics()


def driver_metrics(gateway: Gateway, texts: Mapping[str, str]) -> list[Any]:
    """Return metrics whose values are reported by the driver."""
    metric = gateway.cls(f"{PYTHON_SOURCE}.PythonCustomMetric")
    return [metric(name, text) for name, text in texts.items()]


def driver_values(gateway: Gateway, values: Mapping[str, int]) -> Any:
    """Return the values of driver metrics."""
    return guarded(gateway, lambda: metric_values(gateway, values), "metric of Python sources")


_SOURCES: dict[str, Any] = {}
_COUNTS: dict[str, int] = {}


def python_source(gateway: Gateway) -> Any:
    """Return Spark's description of the Python interpreter to start."""
    if gateway.application not in _SOURCES:
        # The function is never called: the command of a reader or writer is executed instead.
        wrapped = _wrap_function(gateway.spark.sparkContext, _nothing)
        make = gateway.cls(f"{PYTHON_SOURCE}.UserDefinedPythonDataSource")
        _SOURCES[gateway.application] = make(wrapped)
    return _SOURCES[gateway.application]


def _nothing() -> None:
    return None


def _parameters(gateway: Gateway, make: Any) -> int:
    """Count the parameters of the factory, which differ between Spark versions."""
    if gateway.application not in _COUNTS:
        cls = gateway.member("java.lang.Class", "forName")(make._fqn)
        _COUNTS[gateway.application] = int(cls.getConstructors()[0].getParameterCount())
    return _COUNTS[gateway.application]
