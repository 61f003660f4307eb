"""Hooks that run after a commit; their failure cannot undo or fail the commit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # every import of a table module loads this one
    from lancelake.commit.snapshot import Snapshot

AfterCommit: TypeAlias = "Callable[[Snapshot], None]"
"""Called with a version that was just committed."""

_installed: list[AfterCommit] = []


def install(hook: AfterCommit) -> None:
    """Register a hook for every commit whose caller passes no hooks."""
    if hook not in _installed:
        _installed.append(hook)


def run_after(hooks: tuple[AfterCommit, ...] | None, made: Snapshot) -> None:
    """Run hooks in order, by default the installed ones; a failing hook emits a warning."""
    for hook in _installed if hooks is None else hooks:
        try:
            hook(made)
        except Exception as error:  # noqa: BLE001  # the commit has succeeded, whatever fails now
            warnings.warn(
                f"version {made.version} of {made.location.uri} was committed, but a step "
                f"after the commit failed: {error}",
                RuntimeWarning,
                stacklevel=3,
            )
