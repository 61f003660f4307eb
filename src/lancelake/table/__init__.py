"""Table operations: snapshots, reads, writes, schema changes, refs and maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lancelake.table import commit_hooks

if TYPE_CHECKING:  # CLI help does not load table modules
    from lancelake.commit.snapshot import Snapshot


def _clean_up_if_due(made: Snapshot) -> None:
    # Programs that only read do not load the modules that delete files.
    from lancelake.table.cleanup.auto import clean_up_if_due  # noqa: PLC0415

    clean_up_if_due(made)


commit_hooks.install(_clean_up_if_due)
