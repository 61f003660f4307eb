"""Streams of every kind deliver each row exactly once, however often their driver is killed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import lancelake.pylance as lance
from lancelake.table.publish import APP_ID, APP_VERSION
from tests.spark_faults.storm_source import Source
from tests.spark_faults.storm_streams import PAIRS, target_of
from tests.spark_faults.test_driver_deaths import Drivers
from tests.spark_faults.verdict import ensure_sound
from tests.support.official import Official

KILLS = int(os.environ.get("LANCELAKE_STREAM_KILLS", "1"))
SEED = os.environ.get("LANCELAKE_STREAM_SEED", "1")
_MOST_CHANGES = 6


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Drivers]:
    """Return drivers that can be replaced."""
    folder = tmp_path / "drivers"
    folder.mkdir()
    found = Drivers(folder)
    yield found
    found.bury()


def test_killed_streams_deliver_each_row_once(
    drivers: Drivers, place: Path, official_14: Official
) -> None:
    chance, pairs = Random(SEED), PAIRS[:KILLS]
    streams = [name for pair in pairs for name in pair]
    source = Source(place, streams, chance)
    for kill in range(KILLS):
        driver = drivers.living()
        driver.ask("storm", place=str(place), names=pairs[kill % len(pairs)])
        for _ in range(chance.randint(1, _MOST_CHANGES)):
            source.change()
        print(f"kill {kill + 1} after batches {driver.answer()}", flush=True)
        for _ in range(chance.randint(0, _MOST_CHANGES)):
            source.change()
        drivers.bury()
    drivers.living().call("calm", place=str(place), names=streams)
    print(f"{len(source.rows)} rows, {len(source.widened)} columns, {source.cleaned} cleaned up")
    if "wal" in streams:
        lance.dataset(str(target_of(place, "wal"))).wal.merge(flush=True)
    for name in set(streams) - {"feed"}:
        ensure_each_row_once(source, target_of(place, name), official_14)
    for name in set(streams) - {"wal"}:
        ensure_each_batch_once(target_of(place, name))
    if "feed" in streams:
        ensure_each_change_once(source, target_of(place, "feed"))


def ensure_each_row_once(source: Source, table: Path, official: Official) -> None:
    """A table has each row of the source once, and nothing else."""
    ids = Counter(source.rows.keys())
    rows = lance.dataset(str(table)).to_table().to_pylist()
    assert Counter(row["id"] for row in rows) == ids
    assert all(row["v"] == source.rows[row["id"]]["v"] for row in rows)
    assert all(map(source.may_hold, rows))
    assert Counter(official.read(table)["id"].to_pylist()) == ids
    ensure_sound(table)


def ensure_each_batch_once(table: Path) -> None:
    """No batch of a stream was committed by two versions."""
    batches = Counter(_batch_of(version) for version in _versions(table))
    assert [batch for batch, count in batches.items() if batch and count > 1] == []


def ensure_each_change_once(source: Source, table: Path) -> None:
    """Every row was inserted once; it was only updated by versions that gave it a column."""
    changes = lance.dataset(str(table)).to_table().to_pylist()
    found = Counter((c["id"], c["_change_type"], c["_commit_version"]) for c in changes)
    assert [change for change, count in found.items() if count > 1] == []
    inserts = Counter(c["id"] for c in changes if c["_change_type"] == "insert")
    assert inserts == Counter(source.rows.keys())
    assert {
        c["_commit_version"] for c in changes if c["_change_type"] != "insert"
    } <= source.widened


def _versions(table: Path) -> Iterator[Any]:
    found = lance.dataset(str(table))
    for version in found.versions():
        yield lance.dataset(str(table), version=version["version"])


def _batch_of(version: Any) -> tuple[str, str] | None:
    """Return the stream and the batch that a version commits; None if it is no batch."""
    transaction = version._snapshot.transaction
    properties = {} if transaction is None else transaction.properties
    marks = tuple(properties.get(key) for key in (APP_ID, APP_VERSION))
    return None if None in marks else marks
