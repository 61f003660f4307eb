"""Delete rows that match a condition."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.engine.local import LocalEngine
from lancelake.engine.port import Engine, Progress
from lancelake.expr.predicate import Filter
from lancelake.format.operations import Delete
from lancelake.table.conflict_retry import DEFAULT, Retries, racing, until_it_lands
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish
from lancelake.table.row_steps.find import condition_text, find_rows
from lancelake.table.row_steps.mark_deleted import mark_deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The new version, and the number of deleted rows."""

    snapshot: Snapshot
    rows: int


@names_table
def delete(
    base: Snapshot,
    condition: Filter | None,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    retries: Retries = DEFAULT,
    progress: Progress | None = None,
    commits_nothing: bool = True,
) -> Deleted:
    """Delete rows and commit; None deletes all. Fragments without remaining rows are dropped.

    Without `commits_nothing`, a condition that matches no row creates no version.
    """
    runs_on = engine or LocalEngine()

    def work(version: Snapshot) -> Deleted:
        found = find_rows(version, condition, runs_on, progress=progress)
        if not found and not commits_nothing:
            return Deleted(snapshot=version, rows=0)
        gone = mark_deleted(version, found, choices.surroundings.ids)
        operation = Delete(
            updated_fragments=gone.updated,
            deleted_fragment_ids=gone.removed,
            predicate=condition_text(condition),
        )
        chosen = replace(racing(choices, retries), affected_rows=gone.affected)
        made = publish(version, new_transaction(operation, version.version, chosen), chosen)
        return Deleted(snapshot=made, rows=gone.rows)

    return until_it_lands(base, work, retries, choices.surroundings)
