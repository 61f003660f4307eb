"""Replacements for streams: `readStream.table(...)`, `writeStream.toTable(...)`, starting times.

If a table is named, Spark requires the reader and writer of a stream to be JVM classes. The hook
therefore replaces names with paths, which the plain data source streams. It also resolves starting
times, since the plain data source does not know the session's time zone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from lancelake.errors import UnsupportedError
from lancelake.spark.catalog.table_names import table_if_ours
from lancelake.spark.options.table_options import (
    WRITE_OPTIONS,
    TableOptions,
    parse,
    reached_with,
)
from lancelake.spark.options.times import zoned
from lancelake.spark.registration.hooked_writes import private_field
from lancelake.spark.streaming.sink import SINK_OPTIONS
from lancelake.spark.streaming.wal_batches import BATCH_OPTIONS, batches_into
from lancelake.spark.writing.write_plan import SaveMode, existing, plan_write
from lancelake.table.planned_write import commit_write

_FORMAT = "lance"
_TIME = "startingTimestamp"


def load(
    original: Callable[..., DataFrame],
    reader: DataStreamReader,
    path: str | None = None,
    format: str | None = None,
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    """Read a stream; a starting time without a zone is in the zone of the session."""
    if format is not None:
        reader.format(format)
    reader.options(**options)
    if str(reader._jreader.source()).lower() == _FORMAT:
        time = reader._jreader.extraOptions().get(_TIME)
        if time.isDefined():
            reader.option(_TIME, zoned(reader._spark, str(time.get())))
    return original(reader, path, None, schema)


def table(
    original: Callable[..., DataFrame], reader: DataStreamReader, tableName: str
) -> DataFrame:
    """Read a table of a catalog as a stream."""
    found = table_if_ours(reader._spark, tableName)
    if found is None or existing(found) is None:
        return original(reader, tableName)
    return reader.format(_FORMAT).options(**_options(found)).load(found.location.uri)


def start(  # noqa: PLR0917  # the signature is that of PySpark
    original: Callable[..., Any],
    writer: DataStreamWriter,
    path: str | None = None,
    format: str | None = None,
    outputMode: str | None = None,
    partitionBy: Any = None,
    queryName: str | None = None,
    **options: Any,
) -> Any:
    """Start a query; upserts need the tasks of a region's rows, which only a batch has."""
    if format is not None:
        writer.format(format)
    writer.options(**options)
    if str(private_field(writer._jwrite, "source")).lower() != _FORMAT:
        return original(writer, path, None, outputMode, partitionBy, queryName)
    given = _chosen(writer)
    if not _upserts(given):
        return original(writer, path, None, outputMode, partitionBy, queryName)
    table = parse({**given, **({} if path is None else {"path": path})}, BATCH_OPTIONS)
    writer.foreachBatch(batches_into(table))
    return original(writer, None, None, outputMode, partitionBy, queryName)


def to_table(  # noqa: PLR0917  # the signature is that of PySpark
    original: Callable[..., Any],
    writer: DataStreamWriter,
    tableName: str,
    format: str | None = None,
    outputMode: str | None = None,
    partitionBy: Any = None,
    queryName: str | None = None,
    **options: Any,
) -> Any:
    """Write a stream into a table of a catalog."""
    found = table_if_ours(writer._spark, tableName)
    if found is None and _FORMAT in (format, str(private_field(writer._jwrite, "source")).lower()):
        found = _created(writer, tableName)
    if found is None:
        return original(writer, tableName, format, outputMode, partitionBy, queryName, **options)
    if partitionBy is not None or format not in (None, _FORMAT):
        problem = f"{tableName} is a Lance table, which has neither partitions nor other formats"
        raise UnsupportedError(problem, action="Omit partitionBy and format.")
    given = {**_options(found), **options}
    if not _upserts({**_chosen(writer), **given}):
        _create(writer, found.location.uri, given)
    return writer.start(found.location.uri, _FORMAT, outputMode, None, queryName, **given)


def _created(writer: DataStreamWriter, name: str) -> TableOptions | None:
    """Create a table of the session catalog; None if its name is that of another table."""
    spark = writer._spark
    if spark.catalog.tableExists(name):
        return None
    spark.createDataFrame([], writer._df.schema).write.format(_FORMAT).saveAsTable(name)
    return table_if_ours(spark, name)


def _create(writer: DataStreamWriter, uri: str, options: Mapping[str, Any]) -> None:
    """Create the table before the query starts, as Spark does, unless it exists."""
    chosen = private_field(writer._jwrite, "extraOptions")
    given = {key: _text(value) for key, value in options.items()}
    for name in WRITE_OPTIONS:
        if (value := chosen.get(name)).isDefined():
            given.setdefault(name, str(value.get()))
    parsed = parse({**given, "path": uri}, SINK_OPTIONS)
    if existing(parsed) is None:
        plan = plan_write(parsed, writer._df.schema, SaveMode.IGNORE)
        if plan is not None:
            commit_write(plan, ())


def _chosen(writer: DataStreamWriter) -> dict[str, str]:
    """Return the options that a writer was given."""
    pairs = private_field(writer._jwrite, "extraOptions").originalMap().iterator()
    found: dict[str, str] = {}
    while pairs.hasNext():
        pair = pairs.next()
        found[str(pair._1())] = str(pair._2())
    return found


def _upserts(options: Mapping[str, Any]) -> bool:
    return any(key.lower() == "mode" for key in options)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _options(table: TableOptions) -> dict[str, str]:
    return {**reached_with(table.location), **table.rest}
