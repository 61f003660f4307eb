"""Replacement of `spark.read.format("lance").load(...)`: planned in Python, as tables of a catalog.

Spark resolves a Python data source in the JVM and asks it for every column of every row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader

from lancelake.spark.planning.frames import read_options

_FORMAT = "lance"


def load(
    original: Callable[..., DataFrame],
    reader: DataFrameReader,
    path: Any = None,
    format: str | None = None,
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    """Read a Lance table with pushdown; other formats are read by PySpark."""
    if format is not None:
        reader.format(format)
    if not _is_ours(reader, path, schema):
        return original(reader, path, None, schema, **options)
    reader.options(**options)
    return _load(reader, path)


def _is_ours(reader: DataFrameReader, path: Any, schema: Any) -> bool:
    if schema is not None or not (path is None or isinstance(path, str)):
        return False
    jreader = reader._jreader
    if str(jreader.source()).lower() != _FORMAT:
        return False
    return not jreader.userSpecifiedSchema().isDefined()


def _load(reader: DataFrameReader, path: str | None) -> DataFrame:
    given = _options(reader)
    if path is not None:
        given["path"] = path
    return read_options(reader._spark, given)


def _options(reader: DataFrameReader) -> dict[str, str]:
    options = reader._jreader.extraOptions()
    given: dict[str, str] = {}
    if options.isEmpty():
        return given
    pairs = options.originalMap().iterator()
    while pairs.hasNext():
        pair = pairs.next()
        given[pair._1()] = pair._2()
    return given
