"""Stages of a job that runs in one process, reported one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lancelake.engine.port import JobProgress, Progress

Advance = Callable[[int], None]
"""Called with how much more of a stage is done."""


class Stages:
    """Reports stages; without a listener it does nothing."""

    def __init__(self, description: str = "", report: Progress | None = None) -> None:
        self._description, self._report = description, report

    @contextmanager
    def stage(self, name: str, total: int = 1, unit: str = "rows") -> Iterator[Advance]:
        """Report that a stage begins, what is done of it, and that it ended.

        The total may be an estimate; a stage whose steps are not counted ends with its total. A
        stage that fails does not end.
        """
        done = 0

        def report(total: int) -> None:
            if self._report is not None:
                progress = JobProgress(
                    description=self._description, done=done, total=total, stage=name, unit=unit
                )
                self._report(progress)

        def advance(count: int) -> None:
            nonlocal done
            done += count
            if done < total:
                report(total)

        report(max(1, total))
        yield advance
        done = done or max(1, total)
        report(done)
