"""Adding base paths to a table."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.format.bases import BasePath
from lancelake.format.operations import UpdateBases
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish


@names_table
def add_bases(
    base: Snapshot, bases: tuple[BasePath, ...], choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Register additional base paths under which files of the table may be stored."""
    operation = UpdateBases(new_bases=bases)
    return publish(base, new_transaction(operation, base.version, choices), choices)
