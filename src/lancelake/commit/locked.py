"""Commit handler that holds a user's lock while it publishes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

from lancelake.commit.handler import CommitHandler, Outcome, Taken
from lancelake.errors import ConflictError, StorageError
from lancelake.format.names import ManifestName

CommitLock = Callable[[int], AbstractContextManager[Any]]
"""Called with the version to publish, and held meanwhile; raises `ConflictError` when taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedHandler:
    """Handler that holds a lock while it publishes; reads do not need it."""

    inner: CommitHandler
    lock: CommitLock

    def create(self, version: int, name: str, data: bytes) -> Outcome:
        """Publish a manifest while the lock is held."""
        held = ExitStack()
        try:
            held.enter_context(self.lock(version))
        except ConflictError:
            return Taken()
        except Exception as error:
            problem = f"the commit lock for version {version} could not be acquired: {error}"
            raise StorageError(problem, lock=repr(self.lock)) from error
        outcome: Outcome | None = None
        try:
            with held:
                outcome = self.inner.create(version, name, data)
        except Exception as error:
            if outcome is None:
                raise
            # A version stays published even when the lock cannot be released.
            warnings.warn(
                f"the commit lock of version {version} was not released: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
        if outcome is None:
            raise StorageError(f"the commit lock suppressed the error for version {version}")
        return outcome

    def latest(self) -> ManifestName | None:
        """Find the newest version of the main line."""
        return self.inner.latest()

    def find(self, version: int) -> ManifestName | None:
        """Find the manifest of a version, whichever way it is named."""
        return self.inner.find(version)

    def every(self) -> list[ManifestName]:
        """Find all versions of the main line, oldest first."""
        return self.inner.every()
