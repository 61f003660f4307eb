"""Plan and commit writes on the driver; executors write the files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.commit.snapshot import open_existing
from lancelake.core.table_place import TablePlace
from lancelake.core.values.metadata import Fragment, Schema, Snapshot, from_bytes, to_bytes
from lancelake.core.values.writes import (
    MAX_BYTES_PER_FILE,
    MAX_ROWS_PER_FILE,
    CommitChoices,
    OnceOnly,
    OptionNames,
    RowsByFragment,
    RowsToReplace,
    SchemaMode,
    WriteMode,
    WriteOptions,
    WritePlan,
    chosen_text,
    declare_engine,
    version_from_name,
)
from lancelake.data.column_file import WriteTask, write_fragments
from lancelake.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    LanceTableError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedError,
    suggestion,
)
from lancelake.spark.jobs.engine import PATIENCE, SparkEngine, on_partitions
from lancelake.spark.jobs.fitted_rows import (
    PlainRows,
    ensure_distinct,
    ensure_new_names,
    fitted,
    is_case_sensitive,
    matched_names,
)
from lancelake.spark.jobs.target_frame import has_rows_without, rows_where
from lancelake.spark.jobs.wal_rows import (
    UPSERT_OPTIONS,
    Upsert,
    once_unit,
    upsert_frame,
    upsert_of,
)
from lancelake.spark.tasks.on_executors import message_batch, sealed_fragments
from lancelake.spark.values.options import WRITE_OPTIONS, TableOptions, ensure_known, parse
from lancelake.spark.values.spark_types import nullable_schema, stored_schema
from lancelake.table.columns.alter import widened_schema


@dataclass(frozen=True, slots=True)
class WriteRows:
    """Writes the rows of a partition; an empty one creates no file."""

    task: WriteTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        """Write the rows and return their fragments."""
        return to_bytes(written(self.task, batches))


def written(task: WriteTask, batches: Iterator[pa.RecordBatch]) -> tuple[Fragment, ...]:
    """Write batches and return their fragments."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return ()
    every = itertools.chain([first], batches)
    reader = pa.RecordBatchReader.from_batches(first.schema, every)
    try:
        return write_fragments(task, reader)
    except LanceTableError as error:
        raise error.at(task.root.uri) from error.__cause__


def write_frame(frame: DataFrame, task: WriteTask) -> tuple[Fragment, ...]:
    """Write a DataFrame on the executors and return its uncommitted fragments."""
    results = on_partitions(frame, WriteRows(task), description=f"write rows to {task.root.uri}")
    return tuple(fragment for result in results for fragment in from_bytes(result))


@dataclass(frozen=True, slots=True)
class WriteBatches:
    """Writes the rows of one task and returns its fragments."""

    task: WriteTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one batch with one message."""
        yield message_batch(sealed_fragments(written(self.task, iter(batches))))


class SaveMode(Enum):
    """How existing data is handled."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    ERROR = "error"
    IGNORE = "ignore"

    @staticmethod
    def of(name: str) -> SaveMode:
        """Parse the name of a Spark save mode."""
        modes = {mode.value: mode for mode in SaveMode} | {"errorifexists": SaveMode.ERROR}
        mode = modes.get(name.lower())
        if mode is None:
            advice = suggestion(name, modes, "modes")
            raise InvalidRequestError(f"unknown save mode {name!r}", action=advice)
        return mode


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByCondition:
    """Rows to replace, selected by the text of the option replaceWhere."""

    spark: SparkSession
    text: str

    def ensure_possible(self, schema: Schema) -> None:
        """Do nothing: Spark refuses such a condition when it evaluates it."""

    def find(self, at: Snapshot) -> RowsByFragment:
        """Return the rows of a version."""
        return rows_where(self.spark, at, self.text)

    def has_others(self, written: Snapshot) -> bool:
        """Whether some of the rows that were written do not match the condition."""
        return has_rows_without(self.spark, written, self.text)


_MODES = {
    SaveMode.APPEND: WriteMode.APPEND,
    SaveMode.OVERWRITE: WriteMode.OVERWRITE,
    SaveMode.ERROR: WriteMode.CREATE,
    SaveMode.IGNORE: WriteMode.CREATE,
}
_NAMES = OptionNames(
    stable_row_ids="stableRowIds", replaces="replaceWhere", overwrite='mode("overwrite")'
)


def plan_write(
    options: TableOptions,
    schema: t.StructType,
    mode: SaveMode,
    *,
    spark: SparkSession | None = None,
    replaces: RowsToReplace | None = None,
    is_definition: bool = False,
) -> WritePlan | None:
    """Plan a write; None if there is nothing to do.

    New columns are nullable: a frame says that its rows have no nulls, not that the next ones have
    none. A schema that is the user's definition of the table keeps its NOT NULL. Without a session,
    as in the processes of plain data sources, conditions as text are not supported.
    """
    schema = schema if is_definition else nullable_schema(schema)
    replaces = replaces or replaced_rows(options, spark)
    return plan_onto(existing(options), options, schema, mode, replaces, spark)


def plan_onto(
    base: Snapshot | None,
    options: TableOptions,
    schema: t.StructType,
    mode: SaveMode,
    replaces: RowsToReplace | None,
    spark: SparkSession | None = None,
) -> WritePlan | None:
    """Same as `plan_write`, for a version that is already open."""
    if base is not None and mode is SaveMode.IGNORE:
        return None
    data = stored_schema(schema)
    wanted = _wanted(base, options, mode, replaces, spark)
    if base is not None and wanted.schema_mode is SchemaMode.MERGE:
        ensure_distinct(data.names, base.manifest.schema.names)
    # The plain data source commits in a process of its own.
    declare_engine(f"Spark {pyspark.__version__}")
    try:
        return TablePlace(options.location).plan_write(base, data, wanted)
    except (AlreadyExistsError, SchemaMismatchError) as error:
        if base is None:
            raise
        advice = _advice(error, wanted)
        error.next_step = " ".join(filter(None, [error.next_step, advice]))
        raise error.at(base.location.uri, base.version) from error.__cause__


def _advice(error: LanceTableError, wanted: WriteOptions) -> str:
    if isinstance(error, AlreadyExistsError):
        return 'Use mode("append") or mode("overwrite").'
    if wanted.makes_all_rows:
        return "Option overwriteSchema=true replaces the table's columns."
    return "Option mergeSchema=true adds new columns to the table."


def _wanted(
    base: Snapshot | None,
    options: TableOptions,
    mode: SaveMode,
    replaces: RowsToReplace | None,
    spark: SparkSession | None,
) -> WriteOptions:
    """Parse the options of a write."""
    merges_schema = options.flag("mergeSchema", default=False)
    version = options.get("dataStorageVersion")
    has_row_ids = options.get("stableRowIds") is not None or base is None
    return WriteOptions(
        mode=_MODES[mode],
        schema_mode=SchemaMode.MERGE if merges_schema else SchemaMode.STRICT,
        keeps_schema=not options.flag("overwriteSchema", default=False),
        replaces=replaces,
        casts=True,
        data_version=None if version is None else version_from_name(version),
        max_rows_per_file=options.positive("maxRowsPerFile") or MAX_ROWS_PER_FILE,
        max_bytes_per_file=options.positive("maxBytesPerFile") or MAX_BYTES_PER_FILE,
        text=chosen_text(
            options.get("invalidUtf8") or "error", "invalidUtf8", options.location.uri
        ),
        choices=CommitChoices(
            message=options.get("userMetadata"),
            enable_stable_row_ids=options.flag("stableRowIds", default=True)
            if has_row_ids
            else None,
        ),
        once=OnceOnly.of(
            options.get("txnAppId"), options.whole("txnVersion"), names=("txnAppId", "txnVersion")
        ),
        commits_nothing=False,
        patience=PATIENCE,
        engine=None if spark is None else SparkEngine(spark),
        names=_NAMES,
    )


def ensure_columns(schema: t.StructType, options: TableOptions) -> None:
    """Refuse data without columns, since Spark does not pass the number of its rows to a writer."""
    if not schema.fields:
        raise SchemaMismatchError(
            "the data has no columns",
            table=options.location.uri,
            action="Write data with columns.",
        )


def plain_rows(options: TableOptions, schema: t.StructType, mode: SaveMode) -> PlainRows:
    """Return the conversion of a plain data source's rows for the existing table."""
    is_new = _replaces_schema(options, None, mode)
    return PlainRows.into(None if is_new else existing(options), schema)


def replaced_rows(options: TableOptions, spark: SparkSession | None) -> RowsToReplace | None:
    """Return the rows selected by the option replaceWhere; None if it is not set."""
    text = options.get("replaceWhere")
    if text is None:
        return None
    if spark is None:
        raise UnsupportedError(
            "option replaceWhere needs a Spark session to evaluate its condition, and a "
            "plain data source has none",
            table=options.location.uri,
            option="replaceWhere",
            action='Use lancelake.spark.write(frame, path, "overwrite", replaceWhere=...).',
        )
    return RowsByCondition(spark=spark, text=text)


def write(frame: DataFrame, uri: str, mode: str = "error", **options: object) -> Snapshot | None:
    """Write a DataFrame.

    Args:
        frame: The rows.
        uri: Path or URI of the table.
        mode: `error`, `append`, `overwrite` or `ignore`.
        **options: Those of `df.write.format("lance")`.

    Returns:
        The new version; None if nothing was done.

    Raises:
        AlreadyExistsError: The table exists, and `mode` is `error`.
        SchemaMismatchError: The rows do not fit the columns of the table.

    Examples:
        >>> from lancelake.spark import write
        >>> write(spark.range(10), f"{folder}/numbers.lance").version
        1
    """
    given = {key: _text(value) for key, value in options.items()}
    return write_options(frame, {**given, "path": uri}, mode)


def write_options(frame: DataFrame, options: Mapping[str, str], mode: str) -> Snapshot | None:
    """Write a DataFrame to the table selected by options."""
    parsed, wanted = parse(options, (*WRITE_OPTIONS, *UPSERT_OPTIONS)), SaveMode.of(mode)
    ensure_columns(frame.schema, parsed)
    base, upsert = existing(parsed), upsert_of(parsed)
    if upsert is not None:
        _upsert(frame, base, parsed, wanted, upsert)
        return None
    replaces = replaced_rows(parsed, frame.sparkSession)
    if base is None or _replaces_schema(parsed, replaces, wanted):
        ensure_new_names(frame)
    elif wanted in (SaveMode.APPEND, SaveMode.OVERWRITE):
        schema = base.manifest.schema
        if parsed.flag("mergeSchema", default=False):
            schema = widened_schema(base, _shared_columns(frame, schema))
        frame = fitted(frame, base, schema)
    columns = nullable_schema(frame.schema)
    planned = plan_onto(base, parsed, columns, wanted, replaces, frame.sparkSession)
    return write_planned(frame, planned)


def _upsert(
    frame: DataFrame, base: Snapshot | None, options: TableOptions, mode: SaveMode, upsert: Upsert
) -> None:
    """Upsert rows through the MemWAL, which creates no version."""
    uri = options.location.uri
    if base is None:
        raise TableNotFoundError(f"there is no table at {uri}", table=uri)
    if mode is not SaveMode.APPEND:
        raise InvalidRequestError('option mode=upsert needs mode("append")', table=uri)
    ensure_known(options.rest, ("branch", "txnAppId", "txnVersion", *UPSERT_OPTIONS), uri)
    unit = once_unit(options.get("txnAppId"), options.whole("txnVersion"))
    upsert_frame(frame, base, unit, upsert)


def _shared_columns(frame: DataFrame, schema: Schema) -> pa.Schema:
    """Return those columns of a frame that a table has too, in the types of the frame."""
    names = matched_names(frame.columns, schema.names, case_sensitive=is_case_sensitive(frame))
    columns = stored_schema(nullable_schema(frame.toDF(*names).schema))
    return pa.schema([field for field in columns if field.name in schema.names])


def write_planned(frame: DataFrame, plan: WritePlan | None) -> Snapshot | None:
    """Write a DataFrame as planned."""
    if plan is None:
        return None
    if plan.made_before is not None:
        return plan.made_before
    return commit_plan(plan, write_frame(frame, plan.task))


def commit_plan(plan: WritePlan, fragments: tuple[Fragment, ...]) -> Snapshot:
    """Commit the rows of a plan that executors have written."""
    return TablePlace(plan.task.root).commit_write(plan, fragments)


def existing(options: TableOptions) -> Snapshot | None:
    """Open the newest version of the table or branch; None if the table does not exist."""
    return open_existing(options.location, options.get("branch"))


def _replaces_schema(options: TableOptions, replaces: RowsToReplace | None, mode: SaveMode) -> bool:
    """Whether a write replaces the columns of the table, not only its rows."""
    replaces_all = mode is SaveMode.OVERWRITE and replaces is None
    return replaces_all and options.flag("overwriteSchema", default=False)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
