"""Who keeps indices up to date when a table is optimized?"""

from __future__ import annotations

from typing import Protocol

from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Engine
from lancelake.table.publish import CommitChoices


class IndexUpkeep(Protocol):
    """Work on indices that is worth doing from time to time."""

    def due(self, at: Snapshot) -> tuple[str, ...]:
        """Say in words what there is to do for a version; nothing when there is not."""
        ...

    def run(self, at: Snapshot, engine: Engine | None, choices: CommitChoices) -> Snapshot:
        """Do it, and return the version it made."""
        ...


INDEX_UPKEEP: tuple[IndexUpkeep, ...] = ()
"""What is done for indices, in this order."""
