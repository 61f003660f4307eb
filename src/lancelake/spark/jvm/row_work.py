"""Run Python functions on the rows of a query on executors."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.datasource import DataSource
from pyspark.sql.udf import _wrap_function

from lancelake.errors import UnsupportedError
from lancelake.spark.jvm.compiled import make
from lancelake.spark.jvm.gateway import PYTHON_SOURCE, Gateway, is_classic, open_gateway
from lancelake.spark.jvm.python_read import java_schema
from lancelake.spark.worker.on_executors import portable, worker_command
from lancelake.spark.worker.task_messages import MESSAGE, Work

ANSWER = t.StructType([t.StructField(MESSAGE, t.BinaryType())])
_BATCH_BYTES = 64 << 20


def messages_of(frame: DataFrame, work: Work) -> list[bytes]:
    """Run a picklable function on the rows of each partition and return its messages."""
    # A separate query: results of an earlier run of the same frame are not reused.
    rows = frame.select("*")
    job = _job(rows, work)
    if job is None:
        return [bytes(row[MESSAGE]) for row in rows.mapInArrow(portable(work), ANSWER).collect()]
    return [bytes(message) for message in job.collect(rows._jdf.queryExecution())]


def row_work(gateway: Gateway, work: Work, schema: t.StructType) -> Any:
    """Return a function as a Java object; None if this Spark has no class for it."""
    return make(
        gateway,
        "RowWork",
        source_of(gateway, work),
        gateway.byte_array(command(work)),
        java_schema(gateway, schema),
        java_schema(gateway, ANSWER),
        _batch_bytes(gateway),
    )


def source_of(gateway: Gateway, work: Work | type[DataSource]) -> Any:
    """Return Spark's description of the interpreter to start, with its files."""
    wrapped = _wrap_function(gateway.spark.sparkContext, work)
    return gateway.cls(f"{PYTHON_SOURCE}.UserDefinedPythonDataSource")(wrapped)


def ensure_source(gateway: Gateway, name: str, source: type[DataSource]) -> None:
    """Register a plain data source, unless the session has one of this name.

    Spark's own method refuses a name that the active session has, whichever session it is for.
    """
    manager = gateway.session_state().dataSourceManager()
    if not manager.dataSourceExists(name):
        manager.registerDataSource(name, source_of(gateway, source))


def command(work: Work) -> bytes:
    """Return a function in the form that workers expect."""
    return worker_command(work, ANSWER)


def _job(frame: DataFrame, work: Work) -> Any:
    if not is_classic(frame.sparkSession):
        return None
    try:
        return row_work(open_gateway(frame.sparkSession), work, frame.schema)
    except UnsupportedError:
        return None


def _batch_bytes(gateway: Gateway) -> int:
    """Return the setting `spark.sql.execution.arrow.maxBytesPerBatch`."""
    limit = int(gateway.session_state().conf().arrowMaxBytesPerBatch())
    return limit if limit > 0 else _BATCH_BYTES
