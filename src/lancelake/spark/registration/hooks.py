"""Registry of the methods of PySpark that are replaced for sessions with Lance tables.

A replacement is called for registered sessions only; every other session gets PySpark's own method.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrameReader, DataFrameWriter, DataFrameWriterV2, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from lancelake.spark.registration import hooked_reads, hooked_streams, hooked_writes, short_errors

_MARK = "_lancelake_hook"


@dataclass(frozen=True, slots=True)
class Hook:
    """A PySpark method and its replacement.

    The replacement gets the method itself first, and then what the method is called with.
    """

    owner: type
    method: str
    replacement: Callable[..., Any]


HOOKS = (
    Hook(DataFrameReader, "load", hooked_reads.load),
    Hook(DataFrameWriter, "format", hooked_writes.choose_format),
    Hook(DataFrameWriter, "save", hooked_writes.save),
    Hook(DataFrameWriter, "saveAsTable", hooked_writes.save_as_table),
    Hook(DataFrameWriterV2, "append", hooked_writes.write_to_table),
    Hook(DataFrameWriterV2, "overwrite", hooked_writes.write_to_table),
    Hook(DataStreamReader, "load", hooked_streams.load),
    Hook(DataStreamReader, "table", hooked_streams.table),
    Hook(DataStreamWriter, "start", hooked_streams.start),
    Hook(DataStreamWriter, "toTable", hooked_streams.to_table),
)

_REGISTERED: dict[int, Any] = {}
"""The JVMs of registered sessions by their id, kept so that no other object gets the id."""


def install(spark: SparkSession) -> None:
    """Replace the methods for the sessions that share the JVM of a classic session."""
    _REGISTERED[id(spark._jvm)] = spark._jvm
    short_errors.install()
    for hook in HOOKS:
        original = getattr(hook.owner, hook.method)
        if not hasattr(original, _MARK):
            setattr(hook.owner, hook.method, _hooked(original, hook.replacement))


def is_registered(spark: Any) -> bool:
    """Whether the methods are replaced for a session."""
    jvm = getattr(spark, "_jvm", None)
    return jvm is not None and id(jvm) in _REGISTERED


def _hooked(original: Callable[..., Any], replacement: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_registered(self._spark):
            return original(self, *args, **kwargs)
        return replacement(original, self, *args, **kwargs)

    setattr(method, _MARK, True)
    return method
