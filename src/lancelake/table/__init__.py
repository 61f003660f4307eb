"""What users hold: versions of a table, and everything one can ask or do."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot
from lancelake.table import commit_hooks


def _clean_up_if_due(made: Snapshot) -> None:
    # Programs that only read need not load what removes files.
    from lancelake.table.cleanup.auto import clean_up_if_due  # noqa: PLC0415

    clean_up_if_due(made)


commit_hooks.install(_clean_up_if_due)
