"""Removing an index from a table; its files stay until no version names them."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import IndexNotFoundError
from lancelake.format.operations import CreateIndex
from lancelake.table.conflict_retry import DEFAULT, Retries, until_it_lands
from lancelake.table.index.request import entries_named
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish


def drop_index(
    base: Snapshot,
    name: str,
    *,
    choices: CommitChoices = DEFAULT_CHOICES,
    retries: Retries = DEFAULT,
) -> Snapshot:
    """Drop all segments of an index; raise IndexNotFoundError if there are none."""

    def work(version: Snapshot) -> Snapshot:
        try:
            removed = entries_named(version, name)
        except IndexNotFoundError as error:
            problem = f"index not found: {error.problem}"
            raise IndexNotFoundError(problem, table=error.table, version=error.version) from None
        operation = CreateIndex(new_indices=(), removed_indices=removed)
        return publish(version, new_transaction(operation, version.version, choices), choices)

    return until_it_lands(base, work, retries, choices.surroundings)
