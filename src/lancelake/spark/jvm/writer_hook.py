"""Hook of `df.write.format("lance").save(...)`, and of `mergeSchema` for catalog tables.

Spark only supports append and overwrite for Python data sources, and commits in a separate process.
The hook therefore routes this one format of PySpark's writer to `lancelake.spark.write`; other
formats, and sessions that are not registered, are unaffected.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrameWriter, DataFrameWriterV2, SparkSession

from lancelake.errors import UnsupportedError
from lancelake.spark.catalog.table_names import add_columns_of, table_if_ours

_FORMAT = "lance"
_MARK = "_lancelake_save"
_CHOSEN = "_lancelake_format"
_MODES = {"Append": "append", "Overwrite": "overwrite", "Ignore": "ignore"}
_REGISTERED: set[int] = set()
_TO_CATALOGS: tuple[tuple[type, str], ...] = (
    (DataFrameWriter, "saveAsTable"),
    (DataFrameWriterV2, "append"),
    (DataFrameWriterV2, "overwrite"),
)


def write_by_planning(spark: SparkSession) -> None:
    """Install the hook in the writer of a classic session."""
    _REGISTERED.add(id(spark._jvm))
    if not hasattr(DataFrameWriter, _MARK):
        setattr(DataFrameWriter, _MARK, DataFrameWriter.save)
        DataFrameWriter.save = _taught(DataFrameWriter.save)  # type: ignore[method-assign]
        DataFrameWriter.format = _remembering(DataFrameWriter.format)  # type: ignore[method-assign]
        for cls, name in _TO_CATALOGS:
            setattr(cls, name, _widening(getattr(cls, name)))


def _taught(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def save(
        self: DataFrameWriter,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        if format is not None:
            self.format(format)
        if not _is_ours(self):
            return original(self, path, None, mode, partitionBy, **options)
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        return _save(self, path)

    return save


def _widening(original: Callable[..., Any]) -> Callable[..., Any]:
    """Let the option `mergeSchema` add columns to catalog tables, which Spark does not support."""

    @functools.wraps(original)
    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_registered(self._spark):
            if isinstance(self, DataFrameWriter) and _taken(self, *args, **kwargs):
                return None
            # If Spark stores its options elsewhere, it will report that the columns do not match.
            with contextlib.suppress(Py4JError):
                _widen(self, str(args[0]) if args else "")
        return original(self, *args, **kwargs)

    return write


def _remembering(original: Callable[..., DataFrameWriter]) -> Callable[..., DataFrameWriter]:
    """Record that a format was set: the JVM writer does not distinguish it from Spark's default."""

    @functools.wraps(original)
    def format(self: DataFrameWriter, source: str) -> DataFrameWriter:
        setattr(self, _CHOSEN, source)
        return original(self, source)

    return format


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
    wish = {key.lower(): value for key, value in options.items()}.get("replacewhere")
    if wish is None and writer._jwrite.extraOptions().get("replaceWhere").isEmpty():
        return False
    writer.mode(mode).options(**options)
    if partitionBy is not None:
        writer.partitionBy(partitionBy)
    _save(writer, found.location.uri, {**found.location.storage_options, **found.rest})
    return True


def _is_registered(spark: Any) -> bool:
    return getattr(spark, "_jvm", None) is not None and id(spark._jvm) in _REGISTERED


def _widen(writer: Any, name: str) -> None:
    if isinstance(writer, DataFrameWriter):
        wish = writer._jwrite.extraOptions().get("mergeSchema")
    else:
        table = _private(writer._jwriter, "tableName")
        parts = [str(table.apply(i)).replace("`", "``") for i in range(table.size())]
        name = ".".join(f"`{part}`" for part in parts)
        wish = _private(writer._jwriter, "options").get("mergeSchema")
    if wish.isDefined() and str(wish.get()).lower() == "true":
        add_columns_of(writer._df, name)


def _private(java: Any, name: str) -> Any:
    field = java.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(java)


def _is_ours(writer: DataFrameWriter) -> bool:
    return _is_registered(writer._spark) and str(writer._jwrite.source()).lower() == _FORMAT


def _save(writer: DataFrameWriter, path: str | None, more: Mapping[str, str] | None = None) -> None:
    from lancelake.spark.writing.write_plan import write_options  # noqa: PLC0415  # imports the gateway

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
