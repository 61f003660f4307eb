"""Hook of `spark.read.format("lance").load(...)`, which plans in Python like catalog tables.

Spark resolves a Python data source in the JVM and requests every column of every row. The hook
therefore routes this one format of PySpark's reader to `lancelake.spark.read`; other formats, and
sessions that are not registered, are unaffected.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession

_FORMAT = "lance"
_MARK = "_lancelake_load"
_REGISTERED: set[int] = set()


def read_by_planning(spark: SparkSession) -> None:
    """Install the hook in the reader of a classic session."""
    _REGISTERED.add(id(spark._jvm))
    if not hasattr(DataFrameReader, _MARK):
        setattr(DataFrameReader, _MARK, DataFrameReader.load)
        DataFrameReader.load = _taught(DataFrameReader.load)  # type: ignore[method-assign]


def _taught(original: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    @functools.wraps(original)
    def load(
        self: DataFrameReader,
        path: Any = None,
        format: str | None = None,
        schema: Any = None,
        **options: Any,
    ) -> DataFrame:
        if format is not None:
            self.format(format)
        if not _is_ours(self, path, schema):
            return original(self, path, None, schema, **options)
        self.options(**options)
        return _load(self, path)

    return load


def _is_ours(reader: DataFrameReader, path: Any, schema: Any) -> bool:
    spark = reader._spark
    is_known = getattr(spark, "_jvm", None) is not None and id(spark._jvm) in _REGISTERED
    if not is_known or schema is not None or not (path is None or isinstance(path, str)):
        return False
    jreader = reader._jreader
    has_schema = jreader.userSpecifiedSchema().isDefined()
    return str(jreader.source()).lower() == _FORMAT and not has_schema


def _load(reader: DataFrameReader, path: str | None) -> DataFrame:
    from lancelake.spark.reading.frames import read_options  # noqa: PLC0415  # imports the gateway

    pairs = reader._jreader.extraOptions().originalMap().iterator()
    given: dict[str, str] = {}
    while pairs.hasNext():
        pair = pairs.next()
        given[pair._1()] = pair._2()
    if path is not None:
        given["path"] = path
    return read_options(reader._spark, given)
