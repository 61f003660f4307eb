"""Update columns of the rows that match a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.engine.local import LocalEngine
from lancelake.engine.port import Engine, Progress
from lancelake.errors import UnsupportedError
from lancelake.expr.predicate import Filter
from lancelake.format import updated_offsets
from lancelake.format.operations import Update
from lancelake.format.operations.update import UpdateMode
from lancelake.table.conflict_retry import DEFAULT, Retries, racing, until_it_lands
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish
from lancelake.table.row_steps.find import FoundRows, count_rows, find_rows
from lancelake.table.row_steps.mark_deleted import mark_deleted_during
from lancelake.table.rows.assign import Assignment, bind_assignments
from lancelake.table.rows.rewrite import rewrite_rows
from lancelake.table.rows.rewrite_columns import can_rewrite_columns, is_cheaper, rewrite_columns
from lancelake.txn.rules import AffectedRows


class Rewriting(Enum):
    """What an update rewrites: the changed rows, or the assigned columns of their fragments."""

    AUTO = "auto"
    """Whichever writes fewer bytes."""

    ROWS = "rewrite_rows"
    COLUMNS = "rewrite_columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """The new version, and the number of updated rows."""

    snapshot: Snapshot
    rows: int


@names_table
def update(
    base: Snapshot,
    updates: Mapping[str, str],
    condition: Filter | None = None,
    *,
    rewriting: Rewriting = Rewriting.AUTO,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    retries: Retries = DEFAULT,
    progress: Progress | None = None,
) -> Updated:
    """Set columns and commit; without a condition every row is updated."""
    runs_on = engine or LocalEngine()

    def work(version: Snapshot) -> Updated:
        assignments = bind_assignments(updates, version.manifest.schema)
        _ensure_possible(rewriting, assignments, version)
        found = find_rows(version, condition, runs_on, progress=progress)
        job = _Rewrite(version, found, assignments, runs_on, choices, progress)
        if _by_columns(rewriting, version, found, assignments):
            operation, affected = job.columns()
        else:
            operation, affected = job.rows()
        chosen = replace(racing(choices, retries), affected_rows=affected)
        made = publish(version, new_transaction(operation, version.version, chosen), chosen)
        return Updated(snapshot=made, rows=count_rows(found))

    return until_it_lands(base, work, retries, choices.surroundings)


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """Rows of a version that are updated."""

    base: Snapshot
    found: FoundRows
    assignments: tuple[Assignment, ...]
    engine: Engine
    choices: CommitChoices
    progress: Progress | None

    def rows(self) -> tuple[Update, AffectedRows | None]:
        """Write the rows to new fragments, and mark them as deleted in their old ones."""
        gone, added = mark_deleted_during(
            self.base,
            self.found,
            self.choices.surroundings.ids,
            lambda: rewrite_rows(
                self.base, self.found, self.assignments, self.engine, progress=self.progress
            ),
        )
        operation = Update(
            removed_fragment_ids=gone.removed,
            updated_fragments=gone.updated,
            new_fragments=added,
            fields_for_preserving_frag_bitmap=tuple(a.field_id for a in self.assignments),
        )
        return operation, gone.affected

    def columns(self) -> tuple[Update, AffectedRows | None]:
        """Write the columns to new files of their fragments; no row moves."""
        fragments = rewrite_columns(
            self.base, self.found, self.assignments, self.engine, progress=self.progress
        )
        by_id = self.base.manifest.schema.by_id()
        fields = (by_id[a.field_id] for a in self.assignments)
        offsets = {i: bytes(rows.serialize()) for i, rows in self.found.items()}
        is_stable = self.base.manifest.has_stable_row_ids
        operation = Update(
            updated_fragments=fragments,
            fields_modified=tuple(node.id for field in fields for node in field.walk()),
            update_mode=UpdateMode.REWRITE_COLUMNS,
            unknown=updated_offsets.encode(offsets) if is_stable else b"",
        )
        # No rows are deleted.
        return operation, None


def _ensure_possible(
    rewriting: Rewriting, assignments: Sequence[Assignment], base: Snapshot
) -> None:
    if rewriting is Rewriting.COLUMNS and not can_rewrite_columns(
        assignments, base.manifest.schema
    ):
        columns = ", ".join(a.column for a in assignments)
        problem = f"columns of these types cannot be rewritten separately: {columns}"
        raise UnsupportedError(problem, action="Rewrite the rows.", table=base.location.uri)


def _by_columns(
    rewriting: Rewriting, base: Snapshot, found: FoundRows, assignments: Sequence[Assignment]
) -> bool:
    if rewriting is not Rewriting.AUTO:
        return rewriting is Rewriting.COLUMNS
    possible = can_rewrite_columns(assignments, base.manifest.schema)
    return possible and is_cheaper(base, found, assignments)
