"""A MemWAL on an S3 endpoint that refuses requests and loses replies keeps acknowledged rows."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.errors import LanceTableError
from lancelake.memwal.collect import collect_garbage
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.setup import bucketed, flush_tails, initialize
from lancelake.memwal.table_writer import TableWriter
from lancelake.memwal.view import Freshness
from lancelake.storage.location import Location
from soak.endpoint import BUCKET, endpoint, options_of
from soak.faulty_store import Faults, misbehaving
from soak.journal import Journal as FaultLog
from tests.support.memwal_storm import Journal
from tests.support.memwal_tables import INLINE, keys, rows, seen

STEPS = int(os.environ.get("LANCELAKE_S3_STEPS", "60"))
KEYS = 10
REFUSED = {"fail": 0.03, "conflict": 0.1}
LOST = Faults(fail=0.02, lost=0.02, lost_create=0.25)


@pytest.fixture
def ports(tmp_path: Path) -> Iterator[tuple[int, int]]:
    with endpoint("memwal", tmp_path / "endpoint.log", REFUSED) as found:
        yield found


class Work:
    """One process that goes on after every failure, and notes what was acknowledged."""

    def __init__(self, uri: str, port: int) -> None:
        self.place = Location.parse(uri, options_of(port))
        self.chance = random.Random(1)
        self.journal = Journal()
        self.number = 0
        self.writer: TableWriter | None = None

    def newest(self) -> Snapshot:
        return open_snapshot(self.place, Latest())

    def step(self) -> None:
        steps = [self.write] * 5 + [self.flush, self.merge, self.collect, self.replace]
        try:
            self.chance.choice(steps)()
        except LanceTableError:
            self.writer = None

    def write(self) -> None:
        if self.writer is None:
            self.writer = TableWriter(self.newest(), INLINE)
        self.number += 1
        key = self.chance.randrange(KEYS)
        self.journal.hear(0, f"try {key} {self.number}")
        if self.number % 2:
            self.writer.delete(keys(key))
        else:
            self.writer.put(rows((key, str(self.number))))
        self.journal.hear(0, f"ack {key} {self.number}")

    def flush(self) -> None:
        if self.writer is not None:
            self.writer.flush()

    def merge(self) -> None:
        merge_generations(self.newest())

    def collect(self) -> None:
        collect_garbage(self.newest(), older_than=timedelta(0))

    def replace(self) -> None:
        self.writer = None


def test_refused_requests_and_lost_replies(ports: tuple[int, int], tmp_path: Path) -> None:
    calm, faulty = ports
    uri = f"s3://{BUCKET}/t.lance"
    lance.write_dataset(rows(), uri, storage_options=options_of(calm))
    place = Location.parse(uri, options_of(calm))
    base = open_snapshot(place, Latest())
    initialize(base, bucketed(base, "id", 2))
    work = Work(uri, faulty)
    with misbehaving(LOST, "memwal", FaultLog(str(tmp_path / "faults.log"), "test", "ours")):
        for _ in range(STEPS):
            work.step()
    assert '"failed"' in (tmp_path / "endpoint.log").read_text()
    assert '"conflict"' in (tmp_path / "endpoint.log").read_text()
    assert '"reply lost","call":"create"' in (tmp_path / "faults.log").read_text()
    assert work.journal.acknowledgements > STEPS // 4
    found = seen(open_snapshot(place, Latest()))
    assert work.journal.wrong(found) == []
    flush_tails(open_snapshot(place, Latest()))
    merge_generations(open_snapshot(place, Latest()))
    for freshness in Freshness:
        assert seen(open_snapshot(place, Latest()), freshness) == found
