"""Hook of streams on catalog tables: `readStream.table(...)` and `writeStream.toTable(...)`.

If a table is named, Spark requires the reader and writer of a stream to be JVM classes. The hook
therefore replaces names with paths, which the plain data source streams. It also resolves starting
times, since the plain data source does not know the session's time zone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from lancelake.errors import UnsupportedError
from lancelake.spark.catalog.table_names import table_if_ours
from lancelake.spark.session.options import TableOptions, reached_with
from lancelake.spark.session.times import zoned
from lancelake.spark.writing.write_plan import existing

_FORMAT = "lance"
_MARK = "_lancelake_table"
_TIME = "startingTimestamp"
_REGISTERED: set[int] = set()


def stream_by_name(spark: SparkSession) -> None:
    """Install the hook in the streams of a classic session."""
    _REGISTERED.add(id(spark._jvm))
    if not hasattr(DataStreamReader, _MARK):
        setattr(DataStreamReader, _MARK, DataStreamReader.table)
        DataStreamReader.load = _loading(DataStreamReader.load)  # type: ignore[method-assign]
        DataStreamReader.table = _reading(DataStreamReader.table)  # type: ignore[method-assign]
        DataStreamWriter.toTable = _writing(DataStreamWriter.toTable)  # type: ignore[method-assign]


def _loading(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    @functools.wraps(original)
    def load(
        self: DataStreamReader,
        path: str | None = None,
        format: str | None = None,
        schema: Any = None,
        **options: Any,
    ) -> DataFrame:
        if format is not None:
            self.format(format)
        self.options(**options)
        if _is_registered(self._spark) and str(self._jreader.source()).lower() == _FORMAT:
            time = self._jreader.extraOptions().get(_TIME)
            if time.isDefined():
                self.option(_TIME, zoned(self._spark, str(time.get())))
        return original(self, path, None, schema)

    return load


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
                f"{tableName} is a Lance table, which does not support partitioning or "
                "other formats"
            )
            raise UnsupportedError(problem, action="Omit partitionBy and format.")
        given = {**_options(found), **options}
        return self.start(found.location.uri, _FORMAT, outputMode, None, queryName, **given)

    return toTable


def _table(spark: Any, name: str) -> TableOptions | None:
    return table_if_ours(spark, name) if _is_registered(spark) else None


def _is_registered(spark: Any) -> bool:
    return getattr(spark, "_jvm", None) is not None and id(spark._jvm) in _REGISTERED


def _options(table: TableOptions) -> dict[str, str]:
    return {**reached_with(table.location), **table.rest}
