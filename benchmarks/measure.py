"""Compare two implementations, timed alternately."""

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
    peer: str = ""
    """What ours is compared with, and its version; without one, the peer of the section."""

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
    peer: str = ""
    before: Callable[[], object] | None = None
    """Done before each answer, and not timed."""
    notes_cpu: bool = False
    """Whether the ratio of processor time is noted; other work on the machine changes it less."""


def compare(case: Case) -> Comparison:
    """Time both in turns, so that noise of the machine falls on both."""
    first, second = _answer(case, case.ours), _answer(case, case.official)
    if first != second:
        msg = f"{case.name}: ours gives {first!r}, {case.peer or 'official'} {second!r}"
        raise AssertionError(msg)
    ours: list[float] = []
    official: list[float] = []
    cpu = {id(ours): 0.0, id(official): 0.0}
    for turn in range(case.rounds):
        order = [(case.ours, ours), (case.official, official)]
        for work, times in order if turn % 2 else reversed(order):
            if case.before is not None:
                case.before()
            start, busy = time.perf_counter(), time.process_time()
            work()
            times.append(time.perf_counter() - start)
            cpu[id(times)] += time.process_time() - busy
    note = case.note
    if case.notes_cpu:
        ratio = cpu[id(ours)] / cpu[id(official)]
        note = ", ".join(filter(None, (note, f"ratio of processor time {ratio:.2f}")))
    return Comparison(
        name=case.name,
        target=case.target,
        ours_s=statistics.median(ours),
        official_s=statistics.median(official),
        rounds=case.rounds,
        note=note,
        peer=case.peer,
    )


def _answer(case: Case, work: Callable[[], object]) -> object:
    if case.before is not None:
        case.before()
    return work()
