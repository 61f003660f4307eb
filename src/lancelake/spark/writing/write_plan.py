"""Plan and commit writes on the driver; executors write the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.data.arrays.text import chosen_text
from lancelake.data.schema_check import ensure_fits
from lancelake.data.write_task import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE, WriteTask
from lancelake.engine.port import Engine
from lancelake.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    LanceTableError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedError,
)
from lancelake.expr.predicate import Predicate
from lancelake.format import file_version
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.operations import Append, Operation, Overwrite, Update
from lancelake.format.schema import Schema
from lancelake.format.transaction import Transaction
from lancelake.spark.reading.text_conditions import (
    ensure_all_match,
    ensure_frame_matches,
    rows_where,
)
from lancelake.spark.session.options import WRITE_OPTIONS, TableOptions, parse
from lancelake.spark.session.retry_limits import PATIENCE
from lancelake.spark.types import arrow_schema
from lancelake.spark.writing.column_names import ensure_distinct
from lancelake.spark.writing.file_versions import suitable
from lancelake.spark.writing.fitted_rows import PlainRows, ensure_new_names, fitted
from lancelake.spark.writing.frame_writer import write_frame
from lancelake.table.conflict_retry import until_it_lands
from lancelake.table.idempotent import OnceOnly, landed
from lancelake.table.open import Latest, OnBranch, open_snapshot
from lancelake.table.publish import (
    DEFAULT_CHOICES,
    CommitChoices,
    new_transaction,
    publish,
    publish_first,
)
from lancelake.table.rows.find import FoundRows, find_rows
from lancelake.table.rows.mark_deleted import take_out
from lancelake.table.snapshot import Snapshot
from lancelake.table.write import widened


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
            raise InvalidRequestError(
                f"unknown save mode {name!r}", action=f"Use one of {', '.join(known)}."
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByFilter:
    """Rows to replace, selected by a translated Spark condition."""

    condition: Predicate | None
    engine: Engine

    def find(self, at: Snapshot) -> FoundRows:
        """Return the rows of a version."""
        return find_rows(at, self.condition, self.engine)

    def ensure_match(self, base: Snapshot, fragments: tuple[Fragment, ...]) -> None:
        """Accept any rows in their place, as Spark does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByCondition:
    """Rows to replace, selected by the text of the option replaceWhere."""

    spark: SparkSession
    text: str

    def find(self, at: Snapshot) -> FoundRows:
        """Return the rows of a version."""
        return rows_where(self.spark, at, self.text)

    def ensure_match(self, base: Snapshot, fragments: tuple[Fragment, ...]) -> None:
        """Refuse rows that do not match the same condition."""
        ensure_all_match(self.spark, base, fragments, self.text)


RowsToReplace = RowsByFilter | RowsByCondition


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """A planned write; `base` is the version it changes, None for a new table.

    `replaces` selects the rows to delete; if it is None, an overwrite deletes all.
    """

    base: Snapshot | None
    task: WriteTask
    overwrites: bool
    replaces: RowsToReplace | None = None
    choices: CommitChoices = DEFAULT_CHOICES
    once: OnceOnly | None = None
    config: FrozenMap[str, str] = field(default_factory=FrozenMap)


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
    if base is not None and mode is SaveMode.ERROR and not _has_landed(base, _number(options)):
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


def commit_write(plan: WritePlan, fragments: tuple[Fragment, ...]) -> Snapshot:
    """Commit written rows."""
    base = plan.base
    if base is None:
        first = Overwrite(
            fragments=fragments, schema=plan.task.schema, config_upsert_values=plan.config
        )
        return publish_first(plan.task.root, _stamped(plan, first, 0), plan.choices)
    if plan.once is not None:
        before = landed(open_snapshot(base.location, Latest(), main=base.main_location), plan.once)
        if before is not None:
            return before
    if plan.replaces is not None:
        return _replace_rows(plan, plan.replaces, base, fragments)
    if not fragments and not plan.overwrites and plan.once is None:
        return base
    operation = (
        Overwrite(fragments=fragments, schema=plan.task.schema, config_upsert_values=plan.config)
        if plan.overwrites
        else Append(fragments=fragments)
    )
    return publish(base, _stamped(plan, operation, base.version), plan.choices)


def write(frame: DataFrame, uri: str, mode: str = "error", **options: object) -> Snapshot | None:
    """Write a DataFrame and return the new version, None if nothing was done.

    Modes and options are those of `df.write.format("lance")`.
    """
    given = {key: _text(value) for key, value in options.items()}
    return write_options(frame, {**given, "path": uri}, mode)


def write_options(frame: DataFrame, options: Mapping[str, str], mode: str) -> Snapshot | None:
    """Write a DataFrame to the table selected by options."""
    parsed, wanted = parse(options, WRITE_OPTIONS), SaveMode.of(mode)
    ensure_columns(frame.schema, parsed)
    base, replaces = existing(parsed), replaced_rows(parsed, frame.sparkSession)
    if base is None or _replaces_schema(parsed, replaces, wanted):
        ensure_new_names(frame)
    elif wanted in (SaveMode.APPEND, SaveMode.OVERWRITE):
        frame = fitted(frame, base)
    if base is None and isinstance(replaces, RowsByCondition):
        ensure_frame_matches(frame, replaces.text)
    return write_planned(frame, plan_onto(base, parsed, frame.schema, wanted, replaces))


def write_planned(frame: DataFrame, plan: WritePlan | None) -> Snapshot | None:
    """Write a DataFrame as planned."""
    if plan is None:
        return None
    if plan.once is not None and plan.base is not None:
        before = landed(plan.base, plan.once)
        if before is not None:
            return before
    try:
        return commit_write(plan, write_frame(frame, plan.task))
    except LanceTableError as error:
        version = None if plan.base is None else plan.base.version
        raise error.at(plan.task.root.uri, version) from error.__cause__


def existing(options: TableOptions) -> Snapshot | None:
    """Open the newest version of the table or branch; None if the table does not exist."""
    branch = options.get("branch")
    if branch is not None:
        return open_snapshot(options.location, OnBranch(branch))
    try:
        return open_snapshot(options.location, Latest())
    except TableNotFoundError:
        return None


def _plan(
    base: Snapshot | None,
    options: TableOptions,
    schema: t.StructType,
    replaces: RowsToReplace | None,
    *,
    overwrites: bool,
) -> WritePlan:
    arrow = arrow_schema(schema)
    choices = CommitChoices(
        message=options.get("userMetadata"),
        enable_stable_row_ids=base is None and options.flag("stableRowIds", default=True),
    )
    if base is not None and options.flag("mergeSchema", default=False):
        ensure_distinct(arrow.names, base.manifest.schema.names)
        base = widened(base, arrow, choices)
    mode = SaveMode.OVERWRITE if overwrites else SaveMode.APPEND
    is_new = base is None or _replaces_schema(options, replaces, mode)
    wanted = from_arrow(arrow) if base is None or is_new else base.manifest.schema
    version = _file_version(base, options, wanted, overwrites=overwrites)
    _ensure_fits(wanted, arrow, base, overwrites=overwrites and replaces is None)
    task = WriteTask(
        root=options.location if base is None else base.location,
        schema=wanted,
        file_version=version,
        max_rows_per_file=options.positive("maxRowsPerFile") or MAX_ROWS_PER_FILE,
        max_bytes_per_file=options.positive("maxBytesPerFile") or MAX_BYTES_PER_FILE,
        casts=True,
        text=chosen_text(
            options.get("invalidUtf8") or "error", "invalidUtf8", options.location.uri
        ),
    )
    return WritePlan(
        base=base,
        task=task,
        overwrites=overwrites,
        replaces=replaces if base is not None else None,
        choices=replace(choices, data_version=version if base is None or overwrites else None),
        once=_number(options),
    )


def _number(options: TableOptions) -> OnceOnly | None:
    return OnceOnly.of(options.get("txnAppId"), options.whole("txnVersion"))


def _has_landed(base: Snapshot, once: OnceOnly | None) -> bool:
    return once is not None and landed(base, once) is not None


def _replaces_schema(options: TableOptions, replaces: RowsToReplace | None, mode: SaveMode) -> bool:
    """Whether a write replaces the columns of the table, not only its rows."""
    replaces_all = mode is SaveMode.OVERWRITE and replaces is None
    return replaces_all and options.flag("overwriteSchema", default=False)


def _file_version(
    base: Snapshot | None, options: TableOptions, schema: Schema, *, overwrites: bool
) -> FileVersion:
    asked = options.get("dataStorageVersion")
    if asked is not None and (base is None or overwrites):
        return file_version.from_name(asked)
    return suitable(schema) if base is None else base.manifest.data_version


def _ensure_fits(
    schema: Schema, data: pa.Schema, base: Snapshot | None, *, overwrites: bool
) -> None:
    try:
        ensure_fits(schema, data, casts=True)
    except SchemaMismatchError as error:
        if base is None:
            raise
        option = "overwriteSchema" if overwrites else "mergeSchema"
        does = "replaces the table's columns" if overwrites else "adds new columns to the table"
        error.next_step = f"{error.next_step.removesuffix('.')}; option {option}=true {does}."
        raise error.at(base.location.uri, base.version) from error.__cause__


def _stamped(plan: WritePlan, operation: Operation, read_version: int) -> Transaction:
    transaction = new_transaction(operation, read_version, plan.choices)
    return transaction if plan.once is None else plan.once.stamped(transaction)


def _replace_rows(
    plan: WritePlan, rows: RowsToReplace, base: Snapshot, fragments: tuple[Fragment, ...]
) -> Snapshot:
    rows.ensure_match(base, fragments)

    def work(version: Snapshot) -> Snapshot:
        found = rows.find(version)
        if not found and not fragments and plan.once is None:
            return version
        gone = take_out(version, found, plan.choices.surroundings.ids)
        operation = Update(
            removed_fragment_ids=gone.removed,
            updated_fragments=gone.updated,
            new_fragments=fragments,
        )
        choices = replace(plan.choices, affected_rows=gone.affected)
        return publish(version, _stamped(plan, operation, version.version), choices)

    return until_it_lands(base, work, PATIENCE, plan.choices.surroundings)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
