"""Writers of one MemWAL region, and mergers of one table, that run at the same time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import (
    ContentionError,
    LanceTableError,
    StorageUnavailableError,
    WriterFencedError,
)
from lancelake.format.memwal.region_manifest import Generation
from lancelake.memwal.generations import open_generation, read_generation
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.region import details_of
from lancelake.memwal.shape import RowShape
from lancelake.memwal.view import Freshness
from lancelake.memwal.writer import RegionWriter
from lancelake.storage import disk_sync
from lancelake.storage.store import ObjectStore
from tests.support.memwal_tables import (
    INLINE,
    NEW_REGION,
    REGION,
    new_table,
    newest,
    rows,
    seen,
    writer,
)
from tests.support.scheduled_store import DictStore, Outcomes, Schedule, Scheduler

PUTS = 2
SEEDS = 150
ALLOWED = (WriterFencedError, ContentionError, StorageUnavailableError)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Nothing crashes here."""
    with disk_sync.waiting(waits=False):
        yield


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return new_table(tmp_path_factory.mktemp("races") / "t", (0, "base"))


class Race:
    """Writers that note what was acknowledged."""

    def __init__(self, base: Snapshot) -> None:
        self.base = base
        self.store = DictStore()
        self.acknowledged: set[int] = set()
        self.tried: set[int] = set()

    def writer(self, first: int, *, flushes: bool) -> Callable[[ObjectStore], None]:
        def work(store: ObjectStore) -> None:
            mine = RegionWriter(self.base, NEW_REGION, options=INLINE, store=store)
            if flushes:
                mine.flush()
            for key in range(first, first + PUTS):
                self.tried.add(key)
                mine.put(rows((key, "x")))
                self.acknowledged.add(key)

        return work

    def check(self, outcomes: Outcomes[None]) -> None:
        assert all(isinstance(error, ALLOWED) for error in outcomes.raised.values()), outcomes
        last = RegionWriter(self.base, NEW_REGION, options=INLINE, store=self.store)
        state = last.unflushed()
        found = [
            row["id"]
            for generation in state.manifest.generations
            for batch in self._generation(generation)
            for row in batch.to_pylist()
        ]
        for table in state.memtables:
            assert table.num_rows == table.newest().num_rows, "a row was written twice"
            found += table.newest().column("id").to_pylist()
        assert len(found) == len(set(found)), "a row is in two generations"
        assert self.acknowledged <= set(found) <= self.tried

    def _generation(self, generation: Generation) -> Iterator[pa.RecordBatch]:
        opened = open_generation(self.base.location, REGION, generation)
        return read_generation(opened, RowShape.of(self.base))


def test_two_writers_in_every_order_of_their_creates(base: Snapshot) -> None:
    choices: list[int] | None = []
    runs = 0
    while choices is not None:
        race, schedule = Race(base), Schedule(choices)
        works = {"a": race.writer(10, flushes=False), "b": race.writer(20, flushes=True)}
        scheduler = Scheduler(schedule, points=frozenset({"create", "list_names"}))
        race.check(scheduler.run(works, race.store))
        choices = schedule.next_choices()
        runs += 1
    assert runs > 100


@pytest.mark.parametrize("losses", [0, 3])
def test_three_writers_in_random_orders_of_all_calls(base: Snapshot, losses: int) -> None:
    for seed in range(SEEDS):
        chance = random.Random(seed)
        race = Race(base)
        works = {
            name: race.writer(first, flushes=chance.random() < 0.5)
            for name, first in (("a", 10), ("b", 20), ("c", 30))
        }
        schedule = Schedule([chance.randrange(1 << 16) for _ in range(400)])
        race.check(Scheduler(schedule, losses=losses).run(works, race.store))


def test_mergers_at_the_same_time_merge_each_generation_once(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    base = new_table(uri, *((k, "base") for k in range(20)))
    expected: dict[int, str | None] = dict.fromkeys(range(20), "base")
    mine = writer(base)

    def merge(_: int) -> int:
        try:
            return sum(len(merge_generations(newest(uri)).marks) for _ in range(3))
        except ContentionError:
            return 0

    with ThreadPoolExecutor(4) as pool:
        for turn in range(6):
            changed = dict.fromkeys(range(turn, 20 + turn, 3), f"{turn}")
            mine.put(rows(*changed.items()))
            expected |= changed
            mine.flush()
            list(pool.map(merge, range(4)))
    merge_generations(newest(uri))
    assert seen(newest(uri), Freshness.BASE) == expected
    assert details_of(newest(uri)).progress() == {REGION: 6}


def test_many_openers_of_one_region_lose_nothing(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (0, "base"))
    acknowledged: list[int] = []

    def work(first: int) -> None:
        try:
            mine = writer(base)
            for key in range(first, first + 20):
                mine.put(rows((key, "x")))
                acknowledged.append(key)
        except LanceTableError as error:
            assert isinstance(error, ALLOWED)  # any other error is a defect

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(100, 700, 100)))
    assert set(acknowledged) <= set(seen(base))
    writer(base).close()
    assert set(acknowledged) <= set(seen(base, Freshness.FLUSHED))
