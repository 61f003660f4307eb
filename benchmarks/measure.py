"""Two ways to do the same thing, timed in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Median seconds of both, and how many times as long ours takes."""

    name: str
    target: float
    ours_s: float
    official_s: float
    rounds: int
    note: str = ""

    @property
    def ratio(self) -> float:
        """Below 1, ours is faster."""
        return self.ours_s / self.official_s


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question, and the two answers to time; both must give the same result."""

    name: str
    target: float
    ours: Callable[[], object]
    official: Callable[[], object]
    rounds: int = 9
    note: str = ""


def compare(case: Case) -> Comparison:
    """Time both in turns, so that noise of the machine falls on both."""
    first, second = case.ours(), case.official()
    if first != second:
        msg = f"{case.name}: ours gives {first!r}, official {second!r}"
        raise AssertionError(msg)
    ours, official = [], []
    for turn in range(case.rounds):
        order = [(case.ours, ours), (case.official, official)]
        for work, times in order if turn % 2 else reversed(order):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    return Comparison(
        name=case.name,
        target=case.target,
        ours_s=statistics.median(ours),
        official_s=statistics.median(official),
        rounds=case.rounds,
        note=case.note,
    )
