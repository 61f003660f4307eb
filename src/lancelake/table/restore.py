"""Restore an old version as the newest."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot
from lancelake.format.ids import Version
from lancelake.format.operations import Restore
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish


def restore(snapshot: Snapshot, choices: CommitChoices = DEFAULT_CHOICES) -> Snapshot:
    """Make this version the newest; row ids and fragment ids are never reused."""
    head = open_snapshot(snapshot.location, Latest())
    operation = Restore(version=Version(snapshot.version))
    return publish(head, new_transaction(operation, head.version, choices), choices)
