"""Tables: open a version, read it, change it, and keep it in shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lancelake.table import commit_hooks

if TYPE_CHECKING:  # help pages load nothing of a table
    from lancelake.commit.snapshot import Snapshot


def _clean_up_if_due(made: Snapshot) -> None:
    # Programs that only read need not load what removes files.
    from lancelake.table.cleanup.auto import clean_up_if_due  # noqa: PLC0415

    clean_up_if_due(made)


commit_hooks.install(_clean_up_if_due)
