"""How does a lock of the caller's guard the moment a version is published?"""

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
"""Called with the version to be published; held while it is. A `ConflictError` says: taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedHandler:
    """A handler that holds a lock whenever it publishes; finding versions needs none."""

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
            problem = f"the commit lock was not given for version {version}: {error}"
            raise StorageError(problem, lock=repr(self.lock)) from error
        outcome: Outcome | None = None
        try:
            with held:
                outcome = self.inner.create(version, name, data)
        except Exception as error:
            if outcome is None:
                raise
            # What is published stays published, whatever becomes of the lock.
            warnings.warn(
                f"the commit lock of version {version} was not released: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
        if outcome is None:
            raise StorageError(f"the commit lock hid why version {version} was not published")
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
