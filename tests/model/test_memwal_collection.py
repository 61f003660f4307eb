"""Two writers of a region, a merger and a garbage collector in any order, with lost replies."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lancelake.clock import SystemClock
from lancelake.errors import ContentionError, StorageUnavailableError, WriterFencedError
from lancelake.memwal.collect import collect_garbage
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.view import Freshness
from lancelake.memwal.writer import RegionWriter
from lancelake.storage import disk_sync
from lancelake.storage.store import ObjectInfo, ObjectStore
from tests.support.memwal_tables import (
    INLINE,
    NEW_REGION,
    new_table,
    newest,
    rows,
    seen,
    writer,
)
from tests.support.scheduled_store import DictStore, Outcomes, Schedule, Scheduler

ALLOWED = (WriterFencedError, ContentionError, StorageUnavailableError)
CHANGES = frozenset({"create", "delete_many"})
SEEDS = int(os.environ.get("LANCELAKE_MODEL_SEEDS", "20"))
RUNS = int(os.environ.get("LANCELAKE_MODEL_RUNS", "60"))
"""Orders to try of an exhaustive search; 0 for all."""
_SECOND_NS = 1_000_000_000
_CLOCK = SystemClock()


class AgedStore(DictStore):
    """Objects that are a second old: flushed, but not abandoned."""

    def head(self, path: str) -> ObjectInfo:
        written = _CLOCK.now_ns() - _SECOND_NS
        return ObjectInfo(path=path, size_bytes=len(self.get(path)), modified_ns=written)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Nothing crashes here."""
    with disk_sync.waiting(waits=False):
        yield


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    uri = tmp_path_factory.mktemp("collection") / "original"
    new_table(uri, (0, "base"))
    return uri


class Race:
    """A table, and for each key the values that it may have at the end."""

    def __init__(self, original: Path, uri: Path) -> None:
        self.uri = Path(shutil.copytree(original, uri))
        self.store = AgedStore()
        self.possible: dict[int, list[str | None]] = {0: ["base"]}

    def writer(self, key: int, *, flushes: bool) -> Callable[[ObjectStore], None]:
        def work(store: ObjectStore) -> None:
            mine = RegionWriter(newest(self.uri), NEW_REGION, options=INLINE, store=store)
            for number in range(2):
                value = f"{key}-{number}"
                self.possible.setdefault(key, [None]).append(value)
                mine.put(rows((key, value)))
                self.possible[key] = [value]
                if flushes:
                    mine.flush()

        return work

    def merger(self, store: ObjectStore) -> None:
        merge_generations(newest(self.uri), store=store)

    def collector(self, store: ObjectStore) -> None:
        collect_garbage(newest(self.uri), older_than=timedelta(0), store=store)

    def check(self, outcomes: Outcomes[None]) -> None:
        assert all(isinstance(error, ALLOWED) for error in outcomes.raised.values()), outcomes
        self._written()
        # A new writer finds everything, and a merge brings it into the table.
        before = seen(newest(self.uri))
        self._check(before)
        with writer(newest(self.uri)) as last:
            last.put(rows((99, "last")))
        merge_generations(newest(self.uri))
        collect_garbage(newest(self.uri), older_than=timedelta(0))
        for freshness in Freshness:
            assert seen(newest(self.uri), freshness) == {**before, 99: "last"}
        shutil.rmtree(self.uri)

    def _written(self) -> None:
        for path, data in self.store.objects.items():
            (self.uri / path).parent.mkdir(parents=True, exist_ok=True)
            (self.uri / path).write_bytes(data)

    def _check(self, found: dict[int, str | None]) -> None:
        assert set(found) <= set(self.possible)
        for key, values in self.possible.items():
            assert found.get(key) in values, (key, found)


def _orders(limit: int) -> Iterator[Schedule]:
    choices: list[int] | None = []
    for number in itertools.count():
        if choices is None or (limit and number >= limit):
            return
        schedule = Schedule(choices)
        yield schedule
        choices = schedule.next_choices()


def test_two_writers_and_a_collector_in_every_order(original: Path, tmp_path: Path) -> None:
    for number, schedule in enumerate(_orders(RUNS)):
        race = Race(original, tmp_path / f"{number}")
        works = {
            "a": race.writer(1, flushes=False),
            "b": race.writer(2, flushes=True),
            "collector": race.collector,
        }
        scheduler = Scheduler(schedule, points=CHANGES)
        race.check(scheduler.run(works, race.store))


@pytest.mark.parametrize("losses", [0, 3])
def test_all_in_random_orders(original: Path, tmp_path: Path, losses: int) -> None:
    for seed in range(SEEDS):
        chance = random.Random(seed)
        race = Race(original, tmp_path / f"{seed}")

        def merges_and_collects(store: ObjectStore, race: Race = race) -> None:
            race.merger(store)
            race.collector(store)

        works = {
            "a": race.writer(1, flushes=chance.random() < 0.5),
            "b": race.writer(2, flushes=True),
            "merger": race.merger,
            "collector": merges_and_collects,
        }
        schedule = Schedule([chance.randrange(1 << 16) for _ in range(600)])
        points = CHANGES | {"get", "list_names", "list"}
        scheduler = Scheduler(schedule, points=points, losses=losses)
        race.check(scheduler.run(works, race.store))
