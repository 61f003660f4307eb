"""Rows changed: columns set to the values of expressions, where a condition holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lancelake.engine.local import LocalEngine
from lancelake.engine.port import Engine, Progress
from lancelake.format.operations import Update
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish
from lancelake.table.rows.assign import bind_assignments
from lancelake.table.rows.find import Condition, find_rows
from lancelake.table.rows.rewrite import rewrite_rows
from lancelake.table.rows.take_out import take_out_beside
from lancelake.table.run_again import DEFAULT, Retries, until_it_lands
from lancelake.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """The version with the new values, and how many rows have them."""

    snapshot: Snapshot
    rows: int


def update(
    base: Snapshot,
    updates: Mapping[str, str],
    condition: Condition | None = None,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    retries: Retries = DEFAULT,
    progress: Progress | None = None,
) -> Updated:
    """Set columns and commit; None as condition changes every row."""
    runs_on = engine or LocalEngine()

    def work(version: Snapshot) -> Updated:
        assignments = bind_assignments(updates, version.manifest.schema)
        found = find_rows(version, condition, runs_on, progress=progress)
        gone, added = take_out_beside(
            version,
            found,
            choices.surroundings.ids,
            lambda: rewrite_rows(version, found, assignments, runs_on, progress=progress),
        )
        operation = Update(
            removed_fragment_ids=gone.removed,
            updated_fragments=gone.updated,
            new_fragments=added,
            fields_for_preserving_frag_bitmap=tuple(a.field_id for a in assignments),
        )
        chosen = replace(choices, affected_rows=gone.affected)
        made = publish(version, new_transaction(operation, version.version, chosen), chosen)
        return Updated(snapshot=made, rows=gone.rows)

    return until_it_lands(base, work, retries, choices.surroundings)
