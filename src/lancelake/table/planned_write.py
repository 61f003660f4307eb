"""Writes in two steps: planned before other processes write the rows, committed afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.text import InvalidText
from lancelake.data.schema_check import ensure_fits
from lancelake.data.storable import is_for_newest_readers
from lancelake.data.write_task import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE, WriteTask
from lancelake.engine.port import Engine
from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.expr.predicate import Predicate
from lancelake.format import file_version
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.operations import Append, Operation, Overwrite, Update
from lancelake.format.schema import Schema
from lancelake.format.transaction import Transaction
from lancelake.storage.location import Location
from lancelake.table import conflict_retry
from lancelake.table.conflict_retry import Retries, until_it_lands
from lancelake.table.idempotent import OnceOnly, landed
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.publish import (
    DEFAULT_CHOICES,
    CommitChoices,
    new_transaction,
    publish,
    publish_first,
)
from lancelake.table.row_steps.find import FoundRows, condition_text, count_rows, find_rows
from lancelake.table.row_steps.mark_deleted import mark_deleted
from lancelake.table.row_steps.staged_rows import staged
from lancelake.table.write import appended_version, widened


class RowsToReplace(Protocol):
    """Rows of a table that a write replaces."""

    @property
    def text(self) -> str:
        """The condition that selects them."""
        ...

    def find(self, at: Snapshot) -> FoundRows:
        """Return the rows of a version."""
        ...

    def has_others(self, written: Snapshot) -> bool:
        """Whether some of the rows that were written do not match the condition."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByFilter:
    """Rows to replace, by a condition."""

    condition: Predicate | None
    engine: Engine

    @property
    def text(self) -> str:
        """The condition in SQL."""
        return condition_text(self.condition)

    def find(self, at: Snapshot) -> FoundRows:
        """Return the rows of a version."""
        return find_rows(at, self.condition, self.engine)

    def has_others(self, written: Snapshot) -> bool:
        """Whether some of the rows that were written do not match the condition."""
        rows = sum(fragment.physical_rows or 0 for fragment in written.manifest.fragments)
        return count_rows(self.find(written)) < rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """How a planned write changes a table, and how its rows are written.

    `replaces_schema` takes the columns of the data for those of the table, `merges_schema` adds
    columns that only the data has. A file version is only chosen for a table whose rows are all
    new; other writes refuse one that is not the table's.
    """

    overwrites: bool = False
    replaces: RowsToReplace | None = None
    replaces_schema: bool = False
    merges_schema: bool = False
    data_version: FileVersion | None = None
    max_rows_per_file: int = MAX_ROWS_PER_FILE
    max_bytes_per_file: int = MAX_BYTES_PER_FILE
    text: InvalidText = InvalidText.REFUSE
    choices: CommitChoices = DEFAULT_CHOICES
    once: OnceOnly | None = None
    patience: Retries = conflict_retry.DEFAULT


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
    patience: Retries = conflict_retry.DEFAULT

    @property
    def made_before(self) -> Snapshot | None:
        """The version that an earlier attempt of this write committed."""
        return None if self.base is None else made_by(self.base, self.once)


def plan_rows(
    base: Snapshot | None, location: Location, data: pa.Schema, options: PlanOptions
) -> WritePlan:
    """Plan a write of rows with these columns, which may be cast to those of the table."""
    choices = options.choices
    if base is not None and options.merges_schema:
        base = widened(base, data, choices)
    is_new = options.overwrites and options.replaces is None and options.replaces_schema
    schema = from_arrow(data) if base is None or is_new else base.manifest.schema
    chooses = _rows_are_all_new(base, options)
    version = _file_version(base, schema, options)
    _ensure_fits(schema, data, base)
    task = WriteTask(
        root=location if base is None else base.location,
        schema=schema,
        file_version=version,
        max_rows_per_file=options.max_rows_per_file,
        max_bytes_per_file=options.max_bytes_per_file,
        casts=True,
        text=options.text,
        newest_readers_only=base is not None
        and not is_new
        and is_for_newest_readers(schema, version),
    )
    return WritePlan(
        base=base,
        task=task,
        overwrites=options.overwrites,
        replaces=options.replaces if base is not None else None,
        choices=replace(choices, data_version=version if chooses else None),
        once=options.once,
        patience=options.patience,
    )


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


def made_by(base: Snapshot, once: OnceOnly | None) -> Snapshot | None:
    """Return the version of an earlier attempt of a numbered write; None without a number."""
    return None if once is None else landed(base, once)


def unmatched(condition: str) -> InvalidRequestError:
    """Return the error for data that would not be replaced by the same write again."""
    return InvalidRequestError(
        f"the data has rows that do not match the condition of the overwrite: {condition}",
        action="Write only rows that match the condition, or change the condition.",
    )


def suitable(schema: Schema) -> FileVersion:
    """Return the default file version, or a newer one for columns that the default lacks."""
    has_maps = any(node.logical_type == "map" for node in schema.walk())
    return FileVersion.V2_2 if has_maps else file_version.DEFAULT


def _rows_are_all_new(base: Snapshot | None, options: PlanOptions) -> bool:
    return base is None or (options.overwrites and options.replaces is None)


def _file_version(base: Snapshot | None, schema: Schema, options: PlanOptions) -> FileVersion:
    asked = options.data_version
    if base is None:
        return asked or suitable(schema)
    if _rows_are_all_new(base, options):
        return asked or base.manifest.data_version
    return appended_version(base, asked)


def _ensure_fits(schema: Schema, data: pa.Schema, base: Snapshot | None) -> None:
    try:
        ensure_fits(schema, data, casts=True)
    except SchemaMismatchError as error:
        if base is None:
            raise
        raise error.at(base.location.uri, base.version) from error.__cause__


def _stamped(plan: WritePlan, operation: Operation, read_version: int) -> Transaction:
    transaction = new_transaction(operation, read_version, plan.choices)
    return transaction if plan.once is None else plan.once.stamped(transaction)


def _replace_rows(
    plan: WritePlan, rows: RowsToReplace, base: Snapshot, fragments: tuple[Fragment, ...]
) -> Snapshot:
    if fragments and rows.has_others(staged(base, fragments)):
        raise unmatched(rows.text).at(base.location.uri, base.version)

    def work(version: Snapshot) -> Snapshot:
        found = rows.find(version)
        if not found and not fragments and plan.once is None:
            return version
        gone = mark_deleted(version, found, plan.choices.surroundings.ids)
        operation = Update(
            removed_fragment_ids=gone.removed,
            updated_fragments=gone.updated,
            new_fragments=fragments,
        )
        choices = replace(plan.choices, affected_rows=gone.affected)
        return publish(version, _stamped(plan, operation, version.version), choices)

    return until_it_lands(base, work, plan.patience, plan.choices.surroundings)
