"""Lets streams name tables of a catalog: `readStream.table(...)` and `writeStream.toTable(...)`.

Spark wants a stream's reader and writer to be classes of the JVM when a table is named. The names
are therefore turned into paths here, which the plain data source reads and writes as streams.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from lancelake.errors import UnsupportedError
from lancelake.spark.named import table_if_ours
from lancelake.spark.options import TableOptions, reached_with
from lancelake.spark.write_plan import existing

_FORMAT = "lance"
_MARK = "_lancelake_table"
_REGISTERED: set[int] = set()


def stream_by_name(spark: SparkSession) -> None:
    """Teach the streams of a classic session the names of tables."""
    _REGISTERED.add(id(spark._jvm))
    if not hasattr(DataStreamReader, _MARK):
        setattr(DataStreamReader, _MARK, DataStreamReader.table)
        DataStreamReader.table = _reading(DataStreamReader.table)  # type: ignore[method-assign]
        DataStreamWriter.toTable = _writing(DataStreamWriter.toTable)  # type: ignore[method-assign]


def _reading(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    @functools.wraps(original)
    def table(self: DataStreamReader, tableName: str) -> DataFrame:
        found = _table(self._spark, tableName)
        if found is None or existing(found) is None:
            return original(self, tableName)
        return self.format(_FORMAT).options(**_options(found)).load(found.location.uri)

    return table


def _writing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def toTable(
        self: DataStreamWriter,
        tableName: str,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: Any = None,
        queryName: str | None = None,
        **options: Any,
    ) -> Any:
        found = _table(self._spark, tableName)
        if found is None:
            return original(self, tableName, format, outputMode, partitionBy, queryName, **options)
        if partitionBy is not None or format not in (None, _FORMAT):
            problem = (
                f"{tableName} is a Lance table, which has neither partitions nor other formats"
            )
            raise UnsupportedError(problem, action="Leave partitionBy and format away.")
        given = {**_options(found), **options}
        return self.start(found.location.uri, _FORMAT, outputMode, None, queryName, **given)

    return toTable


def _table(spark: Any, name: str) -> TableOptions | None:
    is_known = getattr(spark, "_jvm", None) is not None and id(spark._jvm) in _REGISTERED
    return table_if_ours(spark, name) if is_known else None


def _options(table: TableOptions) -> dict[str, str]:
    return {**reached_with(table.location), **table.rest}
