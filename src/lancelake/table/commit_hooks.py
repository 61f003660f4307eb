"""What follows a commit that landed? Nothing of it can undo or fail the commit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

from lancelake.commit.snapshot import Snapshot
from lancelake.table.cleanup.auto import clean_up_if_due

AfterCommit = Callable[[Snapshot], None]
"""Told of a version that was just committed."""

AFTER_COMMIT: tuple[AfterCommit, ...] = (clean_up_if_due,)
"""What follows every commit, in this order."""


def run_after(steps: Iterable[AfterCommit], made: Snapshot) -> None:
    """Take every step; one that fails is warned about, and the next one is taken."""
    for step in steps:
        try:
            step(made)
        except Exception as error:  # noqa: BLE001  # the commit landed, whatever goes wrong now
            warnings.warn(
                f"version {made.version} of {made.location.uri} is committed, "
                f"but what should follow failed: {error}",
                RuntimeWarning,
                stacklevel=3,
            )
