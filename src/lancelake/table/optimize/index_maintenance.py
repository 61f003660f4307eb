"""Index maintenance that runs when a table is optimized."""

from __future__ import annotations

from typing import Protocol

from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Engine
from lancelake.table.publish import CommitChoices


class IndexMaintenance(Protocol):
    """Index maintenance to run from time to time."""

    def due(self, at: Snapshot) -> tuple[str, ...]:
        """Describe the pending work for a version; empty if there is none."""
        ...

    def run(self, at: Snapshot, engine: Engine | None, choices: CommitChoices) -> Snapshot:
        """Run it, and return the resulting version."""
        ...


INDEX_MAINTENANCE: tuple[IndexMaintenance, ...] = ()
"""Index maintenance steps, in this order."""
