"""Hooks after a commit. Nothing that a hook does can undo or fail the commit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # every import of a module of tables passes here
    from lancelake.commit.snapshot import Snapshot

AfterCommit: TypeAlias = "Callable[[Snapshot], None]"
"""Called with a version that was just committed."""

_installed: list[AfterCommit] = []


def install(hook: AfterCommit) -> None:
    """Have a hook follow every commit whose caller names no hooks of its own."""
    if hook not in _installed:
        _installed.append(hook)


def run_after(hooks: tuple[AfterCommit, ...] | None, made: Snapshot) -> None:
    """Run hooks in order, None being the installed ones; a failure is a warning."""
    for hook in _installed if hooks is None else hooks:
        try:
            hook(made)
        except Exception as error:  # noqa: BLE001  # the commit landed, whatever goes wrong now
            warnings.warn(
                f"version {made.version} of {made.location.uri} is committed, "
                f"but what should follow failed: {error}",
                RuntimeWarning,
                stacklevel=3,
            )
