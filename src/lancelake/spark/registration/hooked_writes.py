"""Replacements of `df.write.format("lance").save(...)` and of writes to tables of a catalog.

Spark offers only append and overwrite to Python data sources, and commits in a process of its own;
it has no option `mergeSchema` for tables of a catalog.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrameWriter

from lancelake.errors import UnsupportedError
from lancelake.format.column_path import quoted_name
from lancelake.spark.catalog.table_names import add_columns_of, table_if_ours
from lancelake.spark.writing.write_plan import write_options

_FORMAT = "lance"
_CHOSEN = "_lancelake_format"
_MODES = {"Append": "append", "Overwrite": "overwrite", "Ignore": "ignore"}


def choose_format(
    original: Callable[..., DataFrameWriter], writer: DataFrameWriter, source: str
) -> DataFrameWriter:
    """Record that a format was set: the JVM writer does not distinguish it from Spark's default."""
    setattr(writer, _CHOSEN, source)
    return original(writer, source)


def save(
    original: Callable[..., None],
    writer: DataFrameWriter,
    path: str | None = None,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: Any = None,
    **options: Any,
) -> None:
    """Write a Lance table and commit in this process; other formats are written by PySpark."""
    if format is not None:
        writer.format(format)
    if str(writer._jwrite.source()).lower() != _FORMAT:
        return original(writer, path, None, mode, partitionBy, **options)
    writer.mode(mode).options(**options)
    if partitionBy is not None:
        writer.partitionBy(partitionBy)
    return _save(writer, path)


def save_as_table(
    original: Callable[..., Any], writer: DataFrameWriter, *args: Any, **kwargs: Any
) -> Any:
    """Write a table of a catalog, with the options that Spark lacks."""
    if _taken(writer, *args, **kwargs):
        return None
    return write_to_table(original, writer, *args, **kwargs)


def write_to_table(original: Callable[..., Any], writer: Any, *args: Any, **kwargs: Any) -> Any:
    """Write a table of a catalog; the option `mergeSchema` adds columns to it first."""
    # If Spark stores its options elsewhere, it will report that the columns do not match.
    with contextlib.suppress(Py4JError):
        _widen(writer, str(args[0]) if args else "")
    return original(writer, *args, **kwargs)


def _taken(
    writer: DataFrameWriter,
    name: str,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: Any = None,
    **options: Any,
) -> bool:
    """Write a catalog table, and refuse formats other than ours.

    Returns whether it was written: Spark itself has no option replaceWhere.
    """
    found = table_if_ours(writer._spark, name)
    if found is None:
        return False
    if (format or getattr(writer, _CHOSEN, None)) is None:
        writer.format(_FORMAT)
    option = {key.lower(): value for key, value in options.items()}.get("replacewhere")
    if option is None and writer._jwrite.extraOptions().get("replaceWhere").isEmpty():
        return False
    writer.mode(mode).options(**options)
    if partitionBy is not None:
        writer.partitionBy(partitionBy)
    _save(writer, found.location.uri, {**found.location.storage_options, **found.rest})
    return True


def _widen(writer: Any, name: str) -> None:
    if isinstance(writer, DataFrameWriter):
        option = writer._jwrite.extraOptions().get("mergeSchema")
    else:
        table = private_field(writer._jwriter, "tableName")
        name = ".".join(quoted_name(str(table.apply(i))) for i in range(table.size()))
        option = private_field(writer._jwriter, "options").get("mergeSchema")
    if option.isDefined() and str(option.get()).lower() == "true":
        add_columns_of(writer._df, name)


def private_field(java: Any, name: str) -> Any:
    """Return the value of a private field of a Java object."""
    field = java.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(java)


def _save(writer: DataFrameWriter, path: str | None, more: Mapping[str, str] | None = None) -> None:
    java = writer._jwrite
    for columns in (java.partitioningColumns(), java.bucketColumnNames()):
        if columns.isDefined():
            problem = "Lance tables do not support partitioning by columns"
            raise UnsupportedError(problem, action="Omit partitionBy and bucketBy.")
    given: dict[str, str] = {}
    pairs = java.extraOptions().originalMap().iterator()
    while pairs.hasNext():
        pair = pairs.next()
        given[pair._1()] = pair._2()
    given |= more or {}
    if path is not None:
        given["path"] = path
    write_options(writer._df, given, _MODES.get(java.curmode().toString(), "error"))
