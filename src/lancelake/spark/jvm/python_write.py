"""Run our writer on executors through Spark's classes for Python data sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import types as t

from lancelake.format.fragment import Fragment
from lancelake.spark.jvm.gateway import PYTHON_SOURCE, Gateway, guarded
from lancelake.spark.jvm.python_read import java_schema
from lancelake.spark.jvm.row_work import command, row_work, source_of
from lancelake.spark.worker.fragment_messages import unsealed_fragments
from lancelake.spark.worker.task_messages import Work


def writer_factory(gateway: Gateway, work: Work, schema: t.StructType) -> Any:
    """Return the factory whose writers call `work` on the rows of a task in Python workers."""
    found = row_work(gateway, work, schema)
    if found is not None:
        return found.writers()
    make = gateway.cls(f"{PYTHON_SOURCE}.PythonBatchWriterFactory")
    arguments = [source_of(gateway, work), bytearray(command(work)), java_schema(gateway, schema)]
    arguments += [gateway.none()] * (_parameters(gateway, make) - len(arguments))
    return guarded(gateway, lambda: make(*arguments), "writer for Python sources")


def fragments_of(messages: Iterable[Any]) -> tuple[Fragment, ...]:
    """Return the fragments written by tasks; tasks without rows have no message."""
    found = (bytes(message.pickledMessage()) for message in messages if message is not None)
    return unsealed_fragments(found)


def _parameters(gateway: Gateway, make: Any) -> int:
    """Count the parameters of the factory, which differ between Spark versions."""
    cls = gateway.member("java.lang.Class", "forName")(make._fqn)
    return int(cls.getConstructors()[0].getParameterCount())
