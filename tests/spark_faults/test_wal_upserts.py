"""Batches of an upserting stream are written once to each region, whatever process dies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.spark_faults.application import Application, DiedError
from tests.spark_faults.rounds import ROUNDS
from tests.spark_faults.standalone import cluster as standalone
from tests.spark_faults.test_driver_deaths import Drivers
from tests.spark_faults.test_speculation import SETTINGS
from tests.spark_faults.wal_stream import ENTRIES, ensure_upserted_once, prepare
from tests.support.official import Official

POINTS = ("entry before", "entry during", "entry after")
VICTIMS = ("executor", "worker", "daemon")

Case = tuple[int, str, str]


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    """Return drivers that can be replaced."""
    found = Drivers(tmp_path_factory.mktemp("drivers"))
    yield found
    found.bury()


@pytest.fixture(scope="module")
def speculating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """Return an application that starts slow tasks twice."""
    folder = tmp_path_factory.mktemp("speculating")
    with standalone(folder) as master:
        application = Application(folder, master, **SETTINGS)
        try:
            with application:
                yield application
        finally:
            application.close()


def deaths() -> list[Case]:
    """Return number, victim and point of each case; a few of them in a short run."""
    if not ROUNDS:
        return [(1, "executor", "entry after")]
    return [
        (number, victim, POINTS[number % len(POINTS)])
        for number, victim in product(range(ROUNDS), VICTIMS)
    ]


@pytest.mark.parametrize("case", deaths(), ids=lambda case: "-".join(map(str, case)))
def test_a_batch_is_written_once_when_part_of_its_job_dies(
    case: Case, cluster: Application, place: Path, official_14: Official
) -> None:
    number, victim, point = case
    prepare(place)
    cluster.arm(point, victim, skips=number % ENTRIES)
    cluster.call("upsert", place=str(place))
    assert cluster.struck
    ensure_upserted_once(place, official_14)


def zombies() -> list[tuple[int, str]]:
    """Return number and point of each case."""
    return [(number, POINTS[number % 2]) for number in range(ROUNDS or 1)]


@pytest.mark.parametrize("case", zombies(), ids=lambda case: "-".join(map(str, case)))
def test_a_task_that_outlives_its_executor_writes_nothing_twice(
    case: tuple[int, str], cluster: Application, place: Path, official_14: Official
) -> None:
    number, point = case
    prepare(place)
    cluster.arm(point, "zombie", skips=number % ENTRIES)
    cluster.call("upsert", place=str(place))
    assert cluster.struck
    ensure_upserted_once(place, official_14)


def driver_deaths() -> list[tuple[int, str]]:
    """Return number and point of each case."""
    if not ROUNDS:
        return [(1, "entry after")]
    return [(number, POINTS[number % len(POINTS)]) for number in range(ROUNDS)]


@pytest.mark.parametrize("case", driver_deaths(), ids=lambda case: "-".join(map(str, case)))
def test_the_next_driver_writes_what_is_missing_of_a_batch(
    case: tuple[int, str], drivers: Drivers, place: Path, official_14: Official
) -> None:
    number, point = case
    prepare(place)
    driver = drivers.living()
    driver.arm(point, "driver", skips=number % ENTRIES)
    with pytest.raises(DiedError):
        driver.call("upsert", place=str(place))
    assert driver.struck
    drivers.bury()
    drivers.living().call("upsert", place=str(place))
    ensure_upserted_once(place, official_14)


@pytest.mark.skipif(not ROUNDS, reason="needs a cluster of its own: `make faults` runs it")
@pytest.mark.parametrize("number", range(ROUNDS or 1))
def test_of_two_attempts_one_writes_the_batch(
    number: int, speculating: Application, place: Path, official_14: Official
) -> None:
    prepare(place)
    speculating.arm(POINTS[number % 2], "slow")
    speculating.call("upsert", place=str(place))
    assert speculating.struck
    ensure_upserted_once(place, official_14)
