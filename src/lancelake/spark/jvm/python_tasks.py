"""Work that Spark's Python workers do for a plan: reads, writes, rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSource
from pyspark.sql.udf import _wrap_function

from lancelake.core.values.metadata import Fragment
from lancelake.spark.jvm.catalyst import partitions
from lancelake.spark.jvm.gateway import (
    CONNECTOR,
    PYTHON_SOURCE,
    Gateway,
    driver_object,
    guard,
    is_classic,
    open_gateway,
)
from lancelake.spark.tasks.on_executors import (
    MESSAGE,
    Work,
    ensure_workers,
    portable,
    unsealed_fragments,
    worker_command,
)


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
    return guard(gateway, lambda: convert(*arguments), "columns")


def input_partitions(gateway: Gateway, payloads: Sequence[bytes]) -> Any:
    """Return Spark's partitions, each with the bytes for the reader on the executor."""
    return guard(gateway, lambda: partitions(gateway, payloads), "partition of Python sources")


def reader_factory(gateway: Gateway, read: Work, schema: t.StructType) -> Any:
    """Return the factory whose readers call `read` with the bytes of a partition in workers."""
    name = f"reader {read.__module__}.{read.__qualname__} {schema.json()}"
    return gateway.recent(name, lambda: _reader_factory(gateway, read, schema))


def _reader_factory(gateway: Gateway, read: Work, schema: t.StructType) -> Any:
    command = bytearray(worker_command(read, schema))
    arguments = (python_source(gateway), command, java_schema(gateway, schema))
    return driver_object(gateway, "ColumnarReaderFactory", *arguments)


def python_metrics(gateway: Gateway) -> Any:
    """Return the metrics of Spark's readers of Python data sources."""
    return python_source(gateway).createPythonMetrics()


def driver_metrics(gateway: Gateway, texts: Mapping[str, str]) -> list[Any]:
    """Return metrics whose values are reported by the driver."""
    metric = gateway.cls(f"{PYTHON_SOURCE}.PythonCustomMetric")
    return [metric(name, text) for name, text in texts.items()]


_SOURCES: dict[str, Any] = {}


def python_source(gateway: Gateway) -> Any:
    """Return Spark's description of the Python interpreter to start."""
    if gateway.application not in _SOURCES:
        ensure_workers(gateway.spark.sparkContext)
        # The function is never called: the command of a reader or writer is executed instead.
        wrapped = _wrap_function(gateway.spark.sparkContext, _nothing)
        make = gateway.cls(f"{PYTHON_SOURCE}.UserDefinedPythonDataSource")
        _SOURCES[gateway.application] = make(wrapped)
    return _SOURCES[gateway.application]


def _nothing() -> None:
    return None


ANSWER = t.StructType([t.StructField(MESSAGE, t.BinaryType())])
_BATCH_BYTES = 64 << 20


def messages_of(frame: DataFrame, work: Work) -> list[bytes]:
    """Run a picklable function on the rows of each partition and return its messages."""
    # A separate query: results of an earlier run of the same frame are not reused.
    rows = frame.select("*")
    if not is_classic(frame.sparkSession):
        return [bytes(row[MESSAGE]) for row in rows.mapInArrow(portable(work), ANSWER).collect()]
    job = row_work(open_gateway(frame.sparkSession), work, rows.schema)
    return [bytes(message) for message in job.collect(rows._jdf.queryExecution())]


def row_work(gateway: Gateway, work: Work, schema: t.StructType) -> Any:
    """Return a function that takes rows as a Java object."""
    return driver_object(
        gateway,
        "RowWork",
        source_of(gateway, work),
        gateway.byte_array(command(work)),
        java_schema(gateway, schema),
        java_schema(gateway, ANSWER),
        _batch_bytes(gateway),
    )


def source_of(gateway: Gateway, work: Work) -> Any:
    """Return Spark's description of the interpreter to start, with its files."""
    ensure_workers(gateway.spark.sparkContext)
    return _describe_source(gateway, work)


def _describe_source(gateway: Gateway, work: Work | type[DataSource]) -> Any:
    wrapped = _wrap_function(gateway.spark.sparkContext, work)
    return gateway.cls(f"{PYTHON_SOURCE}.UserDefinedPythonDataSource")(wrapped)


def command(work: Work) -> bytes:
    """Return a function in the form that workers expect."""
    return worker_command(work, ANSWER)


def _batch_bytes(gateway: Gateway) -> int:
    """Return the setting `spark.sql.execution.arrow.maxBytesPerBatch`."""
    limit = int(gateway.session_state().conf().arrowMaxBytesPerBatch())
    return limit if limit > 0 else _BATCH_BYTES


def writer_factory(gateway: Gateway, work: Work, schema: t.StructType) -> Any:
    """Return the factory whose writers call `work` on the rows of a task in Python workers."""
    return row_work(gateway, work, schema).writers()


def fragments_of(messages: Iterable[Any]) -> tuple[Fragment, ...]:
    """Return the fragments written by tasks; tasks without rows have no message."""
    pickles = (bytes(message.pickledMessage()) for message in messages if message is not None)
    return unsealed_fragments(pickles)
