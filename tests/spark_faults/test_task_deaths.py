"""Jobs survive the death of an executor, a Python worker or the worker daemon."""

from __future__ import annotations

from itertools import cycle, product
from pathlib import Path

import pytest

from tests.spark_faults.application import Application
from tests.spark_faults.rounds import ROUNDS
from tests.spark_faults.verdict import ensure_done_once
from tests.spark_faults.works import WORKS, of_round
from tests.support.official import Official

POINTS = ("file", "source")
VICTIMS = ("executor", "worker", "daemon")

Case = tuple[int, str, str, str]


def cases() -> list[Case]:
    """Return number, work, victim and point of each case; in a short run each work once."""
    if not ROUNDS:
        every = zip(WORKS, cycle(VICTIMS), cycle(POINTS), strict=False)
        return [(0, *case) for case in every]
    return [
        (number, name, victim, POINTS[number // 2 % 2])
        for number, victim in product(range(ROUNDS), VICTIMS)
        for name in of_round(number)
    ]


@pytest.mark.parametrize("case", cases(), ids=lambda case: "-".join(map(str, case)))
def test_nothing_is_lost_or_doubled_when_part_of_a_job_dies(
    case: Case, cluster: Application, place: Path, official_14: Official
) -> None:
    number, name, victim, point = case
    work = WORKS[name]
    work.prepare(place)
    cluster.arm(point, victim, skips=number % work.passes)
    cluster.call("work", name=name, place=str(place))
    assert cluster.struck
    ensure_done_once(work, place, official_14)
