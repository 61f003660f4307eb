"""Drop and reorder columns; no data is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format import evolution
from lancelake.format.column_path import join_path
from lancelake.format.ids import FieldId
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.operations import Project
from lancelake.format.schema import Schema
from lancelake.table.conflict_retry import DEFAULT, until_it_lands
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish


def drop_columns(
    base: Snapshot, paths: Sequence[str], *, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Drop columns, or struct fields by path, and commit."""
    return project(base, lambda schema: evolution.drop(schema, paths), choices)


@names_table
def ensure_structs_stay(base: Snapshot, paths: Sequence[str]) -> None:
    """Raise if a struct would lose its last field, unless the struct itself is dropped."""
    trails = [evolution.resolve(base.manifest.schema, path) for path in paths]
    gone = {trail[-1].id for trail in trails}
    for trail in trails:
        around = trail[:-1]
        if not around or gone & {field.id for field in around}:
            continue
        if all(child.id in gone for child in around[-1].children):
            whole = join_path([field.name for field in around])
            raise InvalidRequestError(
                f"column {whole} would be left without fields",
                column=whole,
                action=f"Drop {whole} itself, or keep a field.",
            )


def reorder_columns(
    base: Snapshot, names: Sequence[str], *, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Move columns to the front, in this order, and commit; the others keep theirs."""
    return project(base, lambda schema: evolution.reorder(schema, names), choices)


@names_table
def project(base: Snapshot, change: Callable[[Schema], Schema], choices: CommitChoices) -> Snapshot:
    """Commit another schema for the same files."""

    def attempt(at: Snapshot) -> Snapshot:
        before = at.manifest.schema
        after = change(before)
        if any(index.name == MEM_WAL for index in at.indices):
            _ensure_unmerged_rows_fit(before, after)
        operation = Project(
            schema=after,
            preserves_nullability=not evolution.forbids_more_nulls(before, after),
        )
        return publish(at, new_transaction(operation, at.version, choices), choices)

    return until_it_lands(base, attempt, DEFAULT, choices.surroundings)


def _ensure_unmerged_rows_fit(before: Schema, after: Schema) -> None:
    """Refuse a change that rows of a MemWAL, whose columns are found by field id, do not survive.

    Without the highest id, the next column that is added would get it, and with it the values of
    the dropped column.
    """
    for field in before.primary_key():
        if field.id not in after.by_id():
            raise UnsupportedError(
                f"key column {field.name} cannot be dropped while the table has a MemWAL",
                column=field.name,
                action="Drop the MemWAL after a merge.",
            )
    if after.max_field_id < before.max_field_id:
        last = before.by_id()[FieldId(before.max_field_id)]
        raise UnsupportedError(
            f"column {last.name}, which was added last, cannot be dropped while the table has a "
            "MemWAL: rows of the MemWAL may have values of it",
            column=last.name,
            action="Drop the MemWAL after a merge, or drop the column after another was added.",
        )
