"""Plan and commit writes on the driver; executors write the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.text import chosen_text
from lancelake.data.write_task import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE
from lancelake.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    LanceTableError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedError,
)
from lancelake.format import file_version
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.jobs.retry_limits import PATIENCE
from lancelake.spark.options.table_options import (
    WRITE_OPTIONS,
    TableOptions,
    ensure_known,
    parse,
)
from lancelake.spark.reading.text_conditions import has_rows_without, others, rows_where
from lancelake.spark.types import arrow_schema, stored_schema
from lancelake.spark.writing.column_names import ensure_distinct, matched_names
from lancelake.spark.writing.fitted_rows import (
    PlainRows,
    ensure_new_names,
    fitted,
    is_case_sensitive,
)
from lancelake.spark.writing.frame_writer import write_frame
from lancelake.spark.writing.wal_rows import (
    UPSERT_OPTIONS,
    Upsert,
    once_unit,
    upsert_frame,
    upsert_of,
)
from lancelake.suggest import suggestion
from lancelake.table.columns.grow import add_null_members, missing_members
from lancelake.table.idempotent import OnceOnly
from lancelake.table.open import open_existing
from lancelake.table.planned_write import (
    PlanOptions,
    RowsToReplace,
    WritePlan,
    commit_write,
    made_by,
    plan_rows,
    unmatched,
)
from lancelake.table.publish import CommitChoices
from lancelake.table.row_steps.find import FoundRows


class SaveMode(Enum):
    """How existing data is handled."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    ERROR = "error"
    IGNORE = "ignore"

    @staticmethod
    def of(name: str) -> SaveMode:
        """Parse the name of a Spark save mode."""
        known = {mode.value: mode for mode in SaveMode} | {"errorifexists": SaveMode.ERROR}
        found = known.get(name.lower())
        if found is None:
            advice = suggestion(name, known, "modes")
            raise InvalidRequestError(f"unknown save mode {name!r}", action=advice)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByCondition:
    """Rows to replace, selected by the text of the option replaceWhere."""

    spark: SparkSession
    text: str

    def find(self, at: Snapshot) -> FoundRows:
        """Return the rows of a version."""
        return rows_where(self.spark, at, self.text)

    def has_others(self, written: Snapshot) -> bool:
        """Whether some of the rows that were written do not match the condition."""
        return has_rows_without(self.spark, written, self.text)


def plan_write(
    options: TableOptions,
    schema: t.StructType,
    mode: SaveMode,
    *,
    spark: SparkSession | None = None,
    replaces: RowsToReplace | None = None,
) -> WritePlan | None:
    """Plan a write; None if there is nothing to do.

    Without a session, as in the processes of plain data sources, conditions as text are not
    supported.
    """
    return plan_onto(
        existing(options), options, schema, mode, replaces or replaced_rows(options, spark)
    )


def plan_onto(
    base: Snapshot | None,
    options: TableOptions,
    schema: t.StructType,
    mode: SaveMode,
    replaces: RowsToReplace | None,
) -> WritePlan | None:
    """Same as `plan_write`, for a version that is already open."""
    if base is not None and mode is SaveMode.IGNORE:
        return None
    if base is not None and mode is SaveMode.ERROR and made_by(base, _number(options)) is None:
        raise AlreadyExistsError(
            f"table {options.location.uri} already exists",
            table=options.location.uri,
            action='Use mode("append") or mode("overwrite").',
        )
    if replaces is not None and mode is not SaveMode.OVERWRITE:
        problem = 'option replaceWhere needs mode("overwrite")'
        raise InvalidRequestError(problem, table=options.location.uri, option="replaceWhere")
    return _plan(base, options, schema, replaces, overwrites=mode is SaveMode.OVERWRITE)


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
        if parsed.flag("mergeSchema", default=False):
            base = with_members(base, frame)
        frame = fitted(frame, base)
    if base is None and replaces is not None:
        _ensure_match(frame, replaces.text)
    return write_planned(frame, plan_onto(base, parsed, frame.schema, wanted, replaces))


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


def _ensure_match(frame: DataFrame, condition: str) -> None:
    """Refuse rows of a new table that do not match the condition of the overwrite."""
    if not others(frame, f.expr(condition)).isEmpty():
        raise unmatched(condition)


def with_members(base: Snapshot, frame: DataFrame) -> Snapshot:
    """Add the fields of nested columns that only a frame has."""
    names = matched_names(
        frame.columns, base.manifest.schema.names, case_sensitive=is_case_sensitive(frame)
    )
    data = pa.schema(
        [f.with_name(name) for name, f in zip(names, arrow_schema(frame.schema), strict=True)]
    )
    missing = missing_members(base, data)
    if not missing:
        return base
    return add_null_members(base, missing, engine=SparkEngine(frame.sparkSession))


def write_planned(frame: DataFrame, plan: WritePlan | None) -> Snapshot | None:
    """Write a DataFrame as planned."""
    if plan is None:
        return None
    if (before := plan.made_before) is not None:
        return before
    try:
        return commit_write(plan, write_frame(frame, plan.task))
    except LanceTableError as error:
        version = None if plan.base is None else plan.base.version
        raise error.at(plan.task.root.uri, version) from error.__cause__


def existing(options: TableOptions) -> Snapshot | None:
    """Open the newest version of the table or branch; None if the table does not exist."""
    return open_existing(options.location, options.get("branch"))


def _plan(
    base: Snapshot | None,
    options: TableOptions,
    schema: t.StructType,
    replaces: RowsToReplace | None,
    *,
    overwrites: bool,
) -> WritePlan:
    arrow = stored_schema(schema)
    merges_schema = options.flag("mergeSchema", default=False)
    if base is not None and merges_schema:
        ensure_distinct(arrow.names, base.manifest.schema.names)
    if base is not None:
        _ensure_row_ids_stay(base, options)
    version = options.get("dataStorageVersion")
    choices = CommitChoices(
        message=options.get("userMetadata"),
        enable_stable_row_ids=base is None and options.flag("stableRowIds", default=True),
    )
    wanted = PlanOptions(
        overwrites=overwrites,
        replaces=replaces,
        replaces_schema=options.flag("overwriteSchema", default=False),
        merges_schema=merges_schema,
        data_version=None if version is None else file_version.from_name(version),
        max_rows_per_file=options.positive("maxRowsPerFile") or MAX_ROWS_PER_FILE,
        max_bytes_per_file=options.positive("maxBytesPerFile") or MAX_BYTES_PER_FILE,
        text=chosen_text(
            options.get("invalidUtf8") or "error", "invalidUtf8", options.location.uri
        ),
        choices=choices,
        once=_number(options),
        patience=PATIENCE,
    )
    try:
        return plan_rows(base, options.location, arrow, wanted)
    except SchemaMismatchError as error:
        if base is None:
            raise
        replaces_all = overwrites and replaces is None
        option = "overwriteSchema" if replaces_all else "mergeSchema"
        does = "replaces the table's columns" if replaces_all else "adds new columns to the table"
        error.next_step = " ".join(filter(None, [error.next_step, f"Option {option}=true {does}."]))
        raise error.at(base.location.uri, base.version) from error.__cause__


def _ensure_row_ids_stay(base: Snapshot, options: TableOptions) -> None:
    """Refuse the other kind of row ids than the table was created with."""
    has = base.manifest.has_stable_row_ids
    if options.flag("stableRowIds", default=has) != has:
        raise InvalidRequestError(
            f"this table has {'' if has else 'no '}stable row ids, which is fixed at its creation",
            table=base.location.uri,
            option="stableRowIds",
            action="Omit stableRowIds, or create a new table.",
        )


def _number(options: TableOptions) -> OnceOnly | None:
    return OnceOnly.of(options.get("txnAppId"), options.whole("txnVersion"))


def _replaces_schema(options: TableOptions, replaces: RowsToReplace | None, mode: SaveMode) -> bool:
    """Whether a write replaces the columns of the table, not only its rows."""
    replaces_all = mode is SaveMode.OVERWRITE and replaces is None
    return replaces_all and options.flag("overwriteSchema", default=False)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
