"""Commits of a killed driver are complete or absent, and the next driver continues."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark_faults.application import Application, DiedError
from tests.spark_faults.rounds import ROUNDS
from tests.spark_faults.verdict import ensure_done_once, version_of
from tests.spark_faults.works import WORKS, of_round
from tests.support.official import Official

POINTS = ("before", "during", "after")

Case = tuple[int, str, str]


class Drivers:
    """Drivers, one after the other."""

    def __init__(self, folder: Path) -> None:
        """Start none yet."""
        self._folder = folder
        self._count = 0
        self._living: Application | None = None

    def living(self) -> Application:
        """Return the one that lives, or start another."""
        if self._living is None:
            self._count += 1
            folder = self._folder / str(self._count)
            folder.mkdir()
            self._living = Application(folder, "local[2]")
            self._living.__enter__()
        return self._living

    def bury(self) -> None:
        """End what is left of the one that lived."""
        if self._living is not None:
            self._living.close()
            self._living = None


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    """Return drivers that can be replaced."""
    found = Drivers(tmp_path_factory.mktemp("drivers"))
    yield found
    found.bury()


def deaths() -> list[Case]:
    """Return number, work and point of each case; a few of them in a short run."""
    if not ROUNDS:
        return [
            (1, "stream of a table", "after"),
            (0, "stream merged by key", "after"),
            (0, "merge of a table", "during"),
        ]
    # Each kind of work dies at another point: every death costs a driver.
    return [
        (number, name, POINTS[(number + shift) % len(POINTS)])
        for number in range(ROUNDS)
        for shift, name in enumerate(of_round(number))
    ]


@pytest.mark.parametrize("case", deaths(), ids=lambda case: "-".join(map(str, case)))
def test_a_killed_driver_leaves_whole_versions_and_the_next_one_continues(
    case: Case, drivers: Drivers, place: Path, official_14: Official
) -> None:
    number, name, point = case
    work = WORKS[name]
    work.prepare(place)
    driver = drivers.living()
    skips = number % work.commits
    driver.arm(point, "driver", skips)
    with pytest.raises(DiedError):
        driver.call("work", name=name, place=str(place))
    assert driver.struck
    drivers.bury()
    assert version_of(place) == work.begins_at + skips + (point == "after")
    drivers.living().call("work", name=name, place=str(place))
    ensure_done_once(work, place, official_14)
