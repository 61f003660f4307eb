"""Hooks that run after a commit; their failure cannot undo or fail the commit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # every import of a table module loads this one
    from lancelake.clock import Clock, Ids
    from lancelake.commit.locked import CommitLock
    from lancelake.commit.snapshot import Snapshot
    from lancelake.format.operations import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A version that was just committed, its change, and what a further commit has to use."""

    snapshot: Snapshot
    operation: Operation
    lock: CommitLock | None
    clock: Clock
    ids: Ids


AfterCommit: TypeAlias = Callable[[Committed], None]
"""Called with a version that was just committed."""

_installed: list[AfterCommit] = []


def install(hook: AfterCommit) -> None:
    """Register a hook for every commit whose caller passes no hooks."""
    if hook not in _installed:
        _installed.append(hook)


def installed_except(hook: AfterCommit) -> tuple[AfterCommit, ...]:
    """Return the installed hooks that follow a commit made by one of them."""
    return tuple(other for other in _installed if other != hook)


def run_after(hooks: tuple[AfterCommit, ...] | None, made: Committed) -> None:
    """Run hooks in order, by default the installed ones; a failing hook emits a warning."""
    for hook in _installed if hooks is None else hooks:
        try:
            hook(made)
        except Exception as error:  # noqa: BLE001  # the commit has succeeded, whatever fails now
            at = made.snapshot
            warnings.warn(
                f"version {at.version} of {at.location.uri} was committed, but a step "
                f"after the commit failed: {error}",
                RuntimeWarning,
                stacklevel=3,
            )
