"""Hooks that run after a commit; their failure cannot undo or fail the commit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

from lancelake.table.cleanup.auto import clean_up_if_due
from lancelake.table.snapshot import Snapshot

AfterCommit = Callable[[Snapshot], None]
"""Called with a version that was just committed."""

AFTER_COMMIT: tuple[AfterCommit, ...] = (clean_up_if_due,)
"""Hooks of every commit, in this order."""


def run_after(steps: Iterable[AfterCommit], made: Snapshot) -> None:
    """Run every hook; a failing hook emits a warning, and the next one is run."""
    for step in steps:
        try:
            step(made)
        except Exception as error:  # noqa: BLE001  # the commit has succeeded, whatever fails now
            warnings.warn(
                f"version {made.version} of {made.location.uri} was committed, but a step "
                f"after the commit failed: {error}",
                RuntimeWarning,
                stacklevel=3,
            )
