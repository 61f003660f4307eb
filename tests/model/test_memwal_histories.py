"""Random histories of a MemWAL against dicts: one for each freshness level."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.errors import WriterFencedError
from lancelake.memwal.collect import collect_garbage
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.search import find_rows
from lancelake.memwal.view import Freshness, open_view
from lancelake.memwal.writer import RegionWriter
from lancelake.storage import disk_sync
from tests.support.memwal_tables import (
    INLINE,
    REGION,
    keys,
    new_table,
    newest,
    rows,
    seen,
    writer,
)

SEEDS = range(24)
STEPS = 25
KEYS = 12


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Nothing crashes here."""
    with disk_sync.waiting(waits=False):
        yield


class History:
    """A table, its writer, writers that were replaced, and what each freshness level shows."""

    def __init__(self, uri: Path, seed: int) -> None:
        self.uri = uri
        self.chance = random.Random(seed)
        self.base: dict[int, str | None] = dict.fromkeys(range(KEYS // 2), "base")
        self.flushed = dict(self.base)
        self.durable = dict(self.base)
        self.options = replace(INLINE, max_memtable_rows=self.chance.choice([3, 10, 1000]))
        self.writer = writer(new_table(uri, *self.base.items()), self.options)
        self.replaced: list[RegionWriter] = []
        self.written = 0

    def step(self) -> None:
        steps = [self.put, self.put, self.delete, self.flush, self.reopen, self.merge]
        self.chance.choice([*steps, self.late_put, self.change_base, self.collect, self.search])()

    def put(self) -> None:
        self.written += 1
        chosen = [self.chance.randrange(KEYS) for _ in range(self.chance.randint(1, 4))]
        pairs = [(key, f"{self.written}-{n}") for n, key in enumerate(chosen)]
        self._before_write(len(pairs))
        self.writer.put(rows(*pairs))
        self.durable |= dict(pairs)

    def delete(self) -> None:
        chosen = self.chance.sample(range(KEYS), self.chance.randint(1, 3))
        self._before_write(len(chosen))
        self.writer.delete(keys(*chosen))
        self.durable = {k: v for k, v in self.durable.items() if k not in chosen}

    def _before_write(self, count: int) -> None:
        """A write that does not fit into the memtable flushes what came before."""
        (*_, current) = self.writer.unflushed().memtables
        if current.num_rows and current.num_rows + count > self.options.max_memtable_rows:
            self.flushed = dict(self.durable)

    def flush(self) -> None:
        self.writer.flush()
        self.flushed = dict(self.durable)

    def reopen(self) -> None:
        self.replaced.append(self.writer)
        self.writer = writer(newest(self.uri), self.options)

    def late_put(self) -> None:
        if self.replaced:
            with pytest.raises(WriterFencedError):
                self.chance.choice(self.replaced).put(rows((0, "late")))

    def merge(self) -> None:
        merge_generations(newest(self.uri))
        self.base = dict(self.flushed)

    def collect(self) -> None:
        collect_garbage(newest(self.uri), older_than=timedelta(0))

    def search(self) -> None:
        """A filter applies to the newest row of each key."""
        key = self.chance.randrange(KEYS)
        view = open_view(newest(self.uri), Freshness.DURABLE)
        value = self.durable.get(key, "base")
        found = view.to_table(filter=f"name = '{value}'").to_pylist()
        expected = [(k, v) for k, v in self.durable.items() if v == value]
        assert sorted((r["id"], r["name"]) for r in found) == sorted(expected)

    def change_base(self) -> None:
        """Change rows directly, where no unmerged row hides the change."""
        self.flush()
        self.merge()
        key = self.chance.randrange(KEYS)
        lance.dataset(self.uri).update({"name": "'direct'"}, where=f"id = {key}")
        for model in (self.base, self.flushed, self.durable):
            if key in model:
                model[key] = "direct"

    def check(self) -> None:
        now = newest(self.uri)
        assert seen(now, Freshness.BASE) == self.base
        assert seen(now, Freshness.FLUSHED) == self.flushed
        assert seen(now, Freshness.DURABLE) == self.durable
        assert seen(now, Freshness.DURABLE, {REGION: self.writer}) == self.durable
        wanted = self.chance.sample(range(KEYS + 2), 5)
        found = find_rows(open_view(now, Freshness.DURABLE), keys(*wanted)).to_pylist()
        expected = [(k, v) for k, v in self.durable.items() if k in wanted]
        assert sorted((r["id"], r["name"]) for r in found) == sorted(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_freshness_level_shows_what_the_model_has(seed: int, tmp_path: Path) -> None:
    history = History(tmp_path / "t", seed)
    for _ in range(STEPS):
        history.step()
        history.check()
