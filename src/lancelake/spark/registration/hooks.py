"""Methods of PySpark that know Lance tables.

Spark resolves a Python data source in the JVM and asks it for every column of every row.

Spark offers only append and overwrite to Python data sources, and commits in a process of its own;
it has no option `mergeSchema` for tables of a catalog.

If a table is named, Spark requires the reader and writer of a stream to be JVM classes. The hook
therefore replaces names with paths, which the plain data source streams. It also resolves starting
times, since the plain data source does not know the session's time zone.

Spark adds the stack traces of the JVM, the plan, and the traceback of the worker, once for each
exception that it wraps around the cause.

A replacement is called for registered sessions only; every other session gets PySpark's own method.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors.exceptions import captured
from pyspark.errors.exceptions.captured import CapturedException, PythonException, UnknownException
from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, DataFrameWriterV2, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from lancelake.core.values.metadata import quoted_name
from lancelake.errors import UnsupportedError
from lancelake.spark.catalog.table_names import add_columns_of, table_if_ours
from lancelake.spark.jvm.gateway import open_field
from lancelake.spark.jvm.proxy import error_in_java
from lancelake.spark.options import (
    WRITE_OPTIONS,
    TableOptions,
    add_zone,
    as_texts,
    options_for,
    parse,
)
from lancelake.spark.planning.request_tables import read_options
from lancelake.spark.streaming.sink import SINK_OPTIONS
from lancelake.spark.streaming.upserts import BATCH_OPTIONS, batches_into
from lancelake.spark.writing.write_plan import SaveMode, commit_plan, plan_write, write_options

_FORMAT = "lance"


def load_rows(
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
    given = _options_in(reader._jreader.extraOptions())
    if path is not None:
        given["path"] = path
    return read_options(reader._spark, given)


def _options_in(java: Any) -> dict[str, str]:
    """Return the options of a reader or writer."""
    options: dict[str, str] = {}
    if java.isEmpty():
        return options
    pairs = java.originalMap().iterator()
    while pairs.hasNext():
        pair = pairs.next()
        options[str(pair._1())] = str(pair._2())
    return options


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
    if _save_as_table(writer, *args, **kwargs):
        return None
    return write_to_table(original, writer, *args, **kwargs)


def write_to_table(original: Callable[..., Any], writer: Any, *args: Any, **kwargs: Any) -> Any:
    """Write a table of a catalog; the option `mergeSchema` adds columns to it first."""
    # If Spark stores its options elsewhere, it will report that the columns do not match.
    with contextlib.suppress(Py4JError):
        _widen(writer, str(args[0]) if args else "")
    return original(writer, *args, **kwargs)


def _save_as_table(
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
    table = table_if_ours(writer._spark, name)
    if table is None:
        return False
    if (format or getattr(writer, _CHOSEN, None)) is None:
        writer.format(_FORMAT)
    option = {key.lower(): value for key, value in options.items()}.get("replacewhere")
    if option is None and writer._jwrite.extraOptions().get("replaceWhere").isEmpty():
        return False
    writer.mode(mode).options(**options)
    if partitionBy is not None:
        writer.partitionBy(partitionBy)
    _save(writer, table.location.uri, {**table.location.storage_options, **table.rest})
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
    return open_field(java, name).get(java)


def _save(writer: DataFrameWriter, path: str | None, more: Mapping[str, str] | None = None) -> None:
    java = writer._jwrite
    for columns in (java.partitioningColumns(), java.bucketColumnNames()):
        if columns.isDefined():
            problem = "Lance tables do not support partitioning by columns"
            raise UnsupportedError(problem, action="Omit partitionBy and bucketBy.")
    given = {**_options_in(java.extraOptions()), **(more or {})}
    if path is not None:
        given["path"] = path
    write_options(writer._df, given, _MODES.get(java.curmode().toString(), "error"))


_TIME = "startingTimestamp"


def load_stream(
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
            reader.option(_TIME, add_zone(reader._spark, str(time.get())))
    return original(reader, path, None, schema)


def table(
    original: Callable[..., DataFrame], reader: DataStreamReader, tableName: str
) -> DataFrame:
    """Read a table of a catalog as a stream."""
    named = table_if_ours(reader._spark, tableName)
    if named is None or named.open_existing() is None:
        return original(reader, tableName)
    return reader.format(_FORMAT).options(**_options(named)).load(named.location.uri)


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
    given = _stream_options(writer)
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
    table = table_if_ours(writer._spark, tableName)
    if table is None and _FORMAT in (format, str(private_field(writer._jwrite, "source")).lower()):
        table = _create_by_name(writer, tableName)
    if table is None:
        return original(writer, tableName, format, outputMode, partitionBy, queryName, **options)
    if partitionBy is not None or format not in (None, _FORMAT):
        problem = f"{tableName} is a Lance table, which has neither partitions nor other formats"
        raise UnsupportedError(problem, action="Omit partitionBy and format.")
    given = {**_options(table), **options}
    if not _upserts({**_stream_options(writer), **given}):
        _create(writer, table.location.uri, given)
    return writer.start(table.location.uri, _FORMAT, outputMode, None, queryName, **given)


def _create_by_name(writer: DataStreamWriter, name: str) -> TableOptions | None:
    """Create a table of the session catalog; None if its name is that of another table."""
    spark = writer._spark
    if spark.catalog.tableExists(name):
        return None
    spark.createDataFrame([], writer._df.schema).write.format(_FORMAT).saveAsTable(name)
    return table_if_ours(spark, name)


def _create(writer: DataStreamWriter, uri: str, options: Mapping[str, Any]) -> None:
    """Create the table before the query starts, as Spark does, unless it exists."""
    own = {key.lower(): value for key, value in _stream_options(writer).items()}
    of_writes = {n: own[n.lower()] for n in WRITE_OPTIONS if n.lower() in own}
    parsed = parse({**of_writes, **as_texts(options), "path": uri}, SINK_OPTIONS)
    if parsed.open_existing() is None:
        plan = plan_write(parsed, writer._df.schema, SaveMode.IGNORE)
        if plan is not None:
            commit_plan(plan, ())


def _stream_options(writer: DataStreamWriter) -> dict[str, str]:
    return _options_in(private_field(writer._jwrite, "extraOptions"))


def _upserts(options: Mapping[str, Any]) -> bool:
    return any(key.lower() == "mode" for key in options)


def _options(table: TableOptions) -> dict[str, str]:
    return {**options_for(table.location), **table.rest}


_SHORT_MARK = "_lancelake_short"
_MOST_LINES = 3


class LanceFailure(CapturedException, Py4JJavaError):  # type: ignore[misc]
    """A Java exception that PySpark has no class for, with an error of this library inside."""

    def __init__(self, origin: Any) -> None:
        CapturedException.__init__(self, origin=origin)
        self.errmsg, self.java_exception, self.exception_cmd = "", origin, None


class WorkerFailure(PythonException):
    """An error of this library in a Python worker, without the traceback of the worker."""

    def __str__(self) -> str:
        """Return the sentence of the error."""
        return CapturedException.__str__(self)


def install_short_errors() -> None:
    """Shorten the messages of exceptions that PySpark converts from Java."""
    original = captured.convert_exception
    if hasattr(original, _SHORT_MARK):
        return

    @functools.wraps(original)
    def convert(exception: Any) -> CapturedException:
        return _short(original(exception), exception)

    setattr(convert, _SHORT_MARK, True)
    captured.convert_exception = convert  # type: ignore[assignment]


def _short(failure: CapturedException, exception: Any) -> CapturedException:
    is_unknown = isinstance(failure, UnknownException)
    text = str(getattr(failure, "_desc", ""))
    error = error_in_java(exception)
    if error is None:
        return failure
    if not is_unknown and len(text.splitlines()) <= _MOST_LINES and str(error) in text:
        return failure
    if is_unknown:
        failure = LanceFailure(exception)
    elif isinstance(failure, PythonException):
        failure = WorkerFailure(origin=exception)
    failure._desc = str(error)
    return failure


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
    Hook(DataFrameReader, "load", load_rows),
    Hook(DataFrameWriter, "format", choose_format),
    Hook(DataFrameWriter, "save", save),
    Hook(DataFrameWriter, "saveAsTable", save_as_table),
    Hook(DataFrameWriterV2, "append", write_to_table),
    Hook(DataFrameWriterV2, "overwrite", write_to_table),
    Hook(DataStreamReader, "load", load_stream),
    Hook(DataStreamReader, "table", table),
    Hook(DataStreamWriter, "start", start),
    Hook(DataStreamWriter, "toTable", to_table),
)

_REGISTERED: dict[int, Any] = {}
"""The JVMs of registered sessions by their id, kept so that no other object gets the id."""


def install(spark: SparkSession) -> None:
    """Replace the methods for the sessions that share the JVM of a classic session."""
    _REGISTERED[id(spark._jvm)] = spark._jvm
    install_short_errors()
    for hook in HOOKS:
        original = getattr(hook.owner, hook.method)
        if not hasattr(original, _MARK):
            setattr(hook.owner, hook.method, _hook(original, hook.replacement))


def is_registered(spark: Any) -> bool:
    """Whether the methods are replaced for a session."""
    jvm = getattr(spark, "_jvm", None)
    return jvm is not None and id(jvm) in _REGISTERED


def _hook(original: Callable[..., Any], replacement: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_registered(self._spark):
            return original(self, *args, **kwargs)
        return replacement(original, self, *args, **kwargs)

    setattr(method, _MARK, True)
    return method
