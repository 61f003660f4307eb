"""The lock that a dataset was opened with, which guards every commit made through it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NoReturn

from lancelake.commit.locked import CommitLock
from lancelake.errors import InvalidRequestError
from lancelake.table.publish import CommitChoices


class GuardedDataset:
    """What the parts of a dataset that commit have in common."""

    _lock: CommitLock | None = None

    @property
    def _choices(self) -> CommitChoices:
        return CommitChoices(lock=self._lock)


def lock_of(where: Any, lock: CommitLock | None) -> CommitLock | None:
    """Return the lock that a call names, else the one of the dataset that it names."""
    return lock if lock is not None else getattr(where, "_lock", None)


def missing_lock(version: int) -> AbstractContextManager[NoReturn]:  # a lock
    """Stand for a lock that cannot travel to another process: refuse to commit."""
    raise InvalidRequestError(
        "the commit lock of this dataset was left behind when it was pickled",
        action="Open the table again with commit_lock.",
    )
