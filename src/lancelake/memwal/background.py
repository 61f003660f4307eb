"""Background merger: a thread that merges flushed generations while writers run."""

from __future__ import annotations

import threading
from datetime import timedelta
from types import TracebackType
from typing import Self

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ContentionError, StorageUnavailableError
from lancelake.memwal.collect import collect_garbage
from lancelake.memwal.merge import merge_generations
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices

_MINUTE = timedelta(minutes=1)


class BackgroundMerger:
    """Merges the generations of a table at intervals until it is closed, and collects garbage.

    A merge that loses against other commits, or finds the store unavailable, is tried again at the
    next interval. Any other failure ends the thread, and `close` raises it: the rows stay in their
    regions.
    """

    def __init__(
        self,
        base: Snapshot,
        *,
        every: timedelta = _MINUTE,
        collects: bool = True,
        choices: CommitChoices = DEFAULT_CHOICES,
    ) -> None:
        """Start the thread."""
        self._base = base
        self._every_s = every.total_seconds()
        self._collects = collects
        self._choices = choices
        self._due = threading.Condition()
        self._wanted = 0
        self._done = 0
        self._is_closed = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="memwal-merge", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def merge_now(self) -> None:
        """Merge without waiting for the interval; return when a merge that began now has ended."""
        with self._due:
            self._wanted += 1
            wanted = self._wanted
            self._due.notify_all()
            self._due.wait_for(lambda: self._done >= wanted or not self._thread.is_alive())
        self._raise_failure()

    def close(self) -> None:
        """End the thread after a merge that is under way."""
        with self._due:
            self._is_closed = True
            self._due.notify_all()
        self._thread.join()
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _work(self) -> None:
        while True:
            with self._due:
                self._due.wait_for(
                    lambda: self._is_closed or self._wanted > self._done, self._every_s
                )
                if self._is_closed:
                    return
                wanted = self._wanted
            try:
                self._merge()
            except (ContentionError, StorageUnavailableError):
                pass
            except BaseException as error:  # noqa: BLE001  # raised by the caller's next call
                self._failure = error
            with self._due:
                self._done = wanted
                self._due.notify_all()
                if self._failure is not None:
                    return

    def _merge(self) -> None:
        newest = open_snapshot(self._base.location, Latest(), main=self._base.main_location)
        made = merge_generations(newest, choices=self._choices)
        if self._collects and made.marks:
            collect_garbage(made.snapshot, surroundings=self._choices.surroundings)
