"""Two writers of a region, a merger and a collector in every order, with lost replies."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lancelake.clock import SystemIds
from lancelake.memwal.region import details_of
from lancelake.memwal.writer import RegionWriter
from lancelake.storage import disk_sync
from lancelake.storage.location import Session
from lancelake.storage.store import ObjectStore
from tests.model.test_memwal_collection import CHANGES, Race
from tests.support.explored_states import Explorer, Works
from tests.support.memwal_tables import INLINE, NEW_REGION, new_table, newest, rows

# The first call of mergers and collectors, so that they begin at any time.
POINTS = CHANGES | {"list_dirs"}
RUNS = int(os.environ.get("LANCELAKE_MODEL_RUNS", "40"))
"""Runs of each search; 0 for all."""


class SmallRace(Race):
    """A race of writers that put once, whose files have the same names in each run."""

    def once(self, key: int, *, flushes: bool) -> Callable[[ObjectStore], None]:
        """Return a writer of one row."""
        ids = SystemIds(key)
        session = Session(ids=ids)

        def work(store: ObjectStore) -> None:
            mine = RegionWriter(newest(self.uri, session), NEW_REGION, options=INLINE, store=store)
            value = f"{key}-0"
            self.possible.setdefault(key, [None]).append(value)
            mine.put(rows((key, value)))
            self.possible[key] = [value]
            if flushes:
                mine.flush()

        return work

    def table_state(self) -> object:
        """Return what is not in the store: the table, and what was acknowledged."""
        now = newest(self.uri)
        progress = sorted(details_of(now).progress().items())
        return now.version, progress, sorted(self.possible.items())


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Nothing crashes here."""
    with disk_sync.waiting(waits=False):
        yield


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    uri = tmp_path_factory.mktemp("states") / "original"
    new_table(uri, (0, "base"))
    return uri


def explored(
    original: Path, tmp_path: Path, works: Callable[[SmallRace], Works], *, losses: int
) -> Explorer:
    """Run all orders, and check the state at the end of each that no other run has reached."""
    explorer = Explorer(points=POINTS, losses=losses, limit=RUNS)
    for number, schedule in enumerate(explorer.schedules()):
        race = SmallRace(original, tmp_path / f"{number}")
        outcomes = explorer.run(schedule, works(race), race.store, race.table_state)
        if outcomes is None:
            shutil.rmtree(race.uri)
        else:
            race.check(outcomes)
    return explorer


def test_writers_merger_and_collector_in_every_order(original: Path, tmp_path: Path) -> None:
    def works(race: SmallRace) -> Works:
        return {
            "a": race.once(1, flushes=False),
            "b": race.once(2, flushes=True),
            "collector": race.collector,
            "merger": race.merger,
        }

    assert explored(original, tmp_path, works, losses=0).states > RUNS


def test_a_lost_reply_at_every_call(original: Path, tmp_path: Path) -> None:
    def works(race: SmallRace) -> Works:
        return {
            "a": race.once(1, flushes=True),
            "collector": race.collector,
            "merger": race.merger,
        }

    assert explored(original, tmp_path, works, losses=1).states > RUNS
