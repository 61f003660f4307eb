"""Commit lock of a dataset, which guards all of its commits."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NoReturn

from lancelake.commit.locked import CommitLock
from lancelake.errors import InvalidRequestError
from lancelake.table.publish import CommitChoices


class GuardedDataset:
    """Common base of mixins that commit."""

    _lock: CommitLock | None = None

    @property
    def _choices(self) -> CommitChoices:
        return CommitChoices(lock=self._lock)


def commit_lock_of(lock: CommitLock | None) -> CommitLock | None:
    """Return the lock, which must be callable."""
    if lock is not None and not callable(lock):
        raise TypeError(f"commit_lock must be a function, got {type(lock)}")
    return lock


def lock_of(where: Any, lock: CommitLock | None) -> CommitLock | None:
    """Return the lock passed to a call, else that of the dataset."""
    return lock if lock is not None else getattr(where, "_lock", None)


def missing_lock(version: int) -> AbstractContextManager[NoReturn]:  # a lock
    """Placeholder of a lock that cannot be pickled: refuses to commit."""
    raise InvalidRequestError(
        "the commit lock of this dataset was lost when it was pickled",
        action="Open the table again with commit_lock.",
    )
