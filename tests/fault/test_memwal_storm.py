"""Writers, mergers and collectors of a MemWAL that are killed at any time lose nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.setup import bucketed, flush_tails, initialize
from lancelake.memwal.view import Freshness
from lancelake.storage import disk_sync
from lancelake.storage.location import Location
from tests.support.memwal_storm import LINES_BETWEEN, Storm
from tests.support.memwal_tables import newest, rows, seen
from tests.support.official import Official

KILLS = int(os.environ.get("LANCELAKE_MEMWAL_KILLS", "3"))
READ = """
result = lance.dataset(uri).to_table().to_pylist()
"""


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Processes stop here, not machines."""
    with disk_sync.waiting(waits=False):
        yield


def new(uri: Path, buckets: int) -> None:
    lance.write_dataset(rows(), uri)
    base = newest(uri)
    initialize(base, bucketed(base, "id", buckets))


def ensure_right(uri: Path, storm: Storm, official: Official) -> None:
    found = seen(newest(uri))
    assert storm.journal.wrong(found) == []
    flush_tails(newest(uri))
    merge_generations(newest(uri))
    for freshness in Freshness:
        assert seen(newest(uri), freshness) == found
    assert {row["id"]: row["name"] for row in official.run(uri, READ)} == found
    damage = [f for f in check(Location.parse(uri), data=True) if f.severity is Severity.ERROR]
    assert damage == []


def test_a_storm_of_kills(tmp_path: Path, official_14: Official) -> None:
    uri = tmp_path / "t"
    new(uri, buckets=2)
    roles = ["writer", "writer", "writer", "merger", "collector"]
    with Storm(uri, roles, seed=KILLS) as storm:
        while storm.kills < KILLS or storm.journal.acknowledgements < KILLS:
            storm.hear(LINES_BETWEEN)
            storm.strike()
    ensure_right(uri, storm, official_14)


def test_six_processes_race_for_one_region(tmp_path: Path, official_14: Official) -> None:
    uri = tmp_path / "t"
    new(uri, buckets=1)
    with Storm(uri, ["writer"] * 6, seed=0) as storm:
        while storm.journal.acknowledgements < 30:
            storm.hear(1)
    ensure_right(uri, storm, official_14)
