"""How do Spark's executors run our reader? Through Spark's own classes for Python sources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.serializers import CPickleSerializer
from pyspark.sql import types as t
from pyspark.sql.udf import _wrap_function

from lancelake.spark.jvm.compiled import make as make_compiled
from lancelake.spark.jvm.gateway import CONNECTOR, PYTHON_SOURCE, Door, guarded
from lancelake.spark.reading.partition import read
from lancelake.spark.session.on_executors import portable


def java_schema(door: Door, schema: t.StructType) -> Any:
    """Return a schema as Java object."""
    return door.member("org.apache.spark.sql.types.DataType", "fromJson")(schema.json())


def python_schema(schema: Any) -> t.StructType:
    """Return a schema as Python object."""
    return t.StructType.fromJson(json.loads(schema.json()))


def v2_columns(door: Door, schema: Any) -> Any:
    """Return the columns of a schema as the connector API has them, in one call to Java."""
    convert = door.member(f"{CONNECTOR}.catalog.CatalogV2Util", "structTypeToV2Columns")
    # Since 4.2 there is a second argument; its default is true.
    arguments = (schema,) if door.spark.version.startswith("4.1.") else (schema, True)
    return guarded(door, lambda: convert(*arguments), "columns")


def input_partitions(door: Door, payloads: Sequence[bytes]) -> Any:
    """Return Spark's partitions, each with the bytes that the reader on the executor gets."""
    make = door.cls(f"{PYTHON_SOURCE}.PythonInputPartition")
    parts = [make(number, bytearray(payload)) for number, payload in enumerate(payloads)]
    return door.array(door.connector("read.InputPartition"), parts)


def reader_factory(door: Door, schema: t.StructType) -> Any:
    """Return the factory whose readers run `reading.partition.read` in Python workers."""
    command = CPickleSerializer().dumps((portable(read), schema))  # type: ignore[no-untyped-call]
    arguments = [_source(door), bytearray(command), java_schema(door, schema)]
    columnar = make_compiled(door, "ColumnarReaderFactory", *arguments)
    if columnar is not None:
        return columnar
    make = door.cls(f"{PYTHON_SOURCE}.PythonPartitionReaderFactory")
    arguments += [door.none()] * (_parameters(door, make) - len(arguments))
    return guarded(door, lambda: make(*arguments), "reader for Python sources")


def python_metrics(door: Door) -> Any:
    """Return the metrics that Spark's readers of Python sources report."""
    return _source(door).createPythonMetrics()


def driver_metrics(door: Door, texts: Mapping[str, str]) -> list[Any]:
    """Return metrics whose values the driver knows."""
    metric = door.cls(f"{PYTHON_SOURCE}.PythonCustomMetric")
    return [metric(name, text) for name, text in texts.items()]


def driver_values(door: Door, values: Mapping[str, int]) -> Any:
    """Return the values of metrics that the driver knows."""
    value_of = door.cls(f"{PYTHON_SOURCE}.PythonCustomTaskMetric")
    found = [value_of(name, value) for name, value in values.items()]
    return door.array(door.connector("metric.CustomTaskMetric"), found)


_SOURCES: dict[str, Any] = {}
_COUNTS: dict[str, int] = {}


def _source(door: Door) -> Any:
    """Return what tells Spark which interpreter to start."""
    if door.application not in _SOURCES:
        wrapped = _wrap_function(door.spark.sparkContext, read)
        make = door.cls(f"{PYTHON_SOURCE}.UserDefinedPythonDataSource")
        _SOURCES[door.application] = make(wrapped)
    return _SOURCES[door.application]


def _parameters(door: Door, make: Any) -> int:
    """Count the parameters of the factory, which differ between versions of Spark."""
    if door.application not in _COUNTS:
        cls = door.member("java.lang.Class", "forName")(make._fqn)
        _COUNTS[door.application] = int(cls.getConstructors()[0].getParameterCount())
    return _COUNTS[door.application]
