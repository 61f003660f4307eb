"""Drop and reorder columns; no data is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.format import evolution
from lancelake.format.operations import Project
from lancelake.format.schema import Schema
from lancelake.table.conflict_retry import DEFAULT, until_it_lands
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish


def drop_columns(
    base: Snapshot, paths: Sequence[str], *, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Drop columns, or struct fields by path, and commit."""
    return project(base, lambda schema: evolution.drop(schema, paths), choices)


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
        operation = Project(
            schema=after,
            preserves_nullability=not evolution.forbids_more_nulls(before, after),
        )
        return publish(at, new_transaction(operation, at.version, choices), choices)

    return until_it_lands(base, attempt, DEFAULT, choices.surroundings)
