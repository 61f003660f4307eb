"""A stream of upserts through the MemWAL that is killed, and the rows and entries it must leave."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.memwal.status import read_entries
from lancelake.storage.location import Location
from tests.spark_faults.verdict import ensure_sound
from tests.spark_faults.works import FILES, doomed, parts, table_of
from tests.support.official import Official

BUCKETS = 2
ENTRIES = FILES * BUCKETS
AFTER = {i: k for part in parts(overlap=True) for i, k in part.items()}


def prepare(place: Path) -> None:
    """Make a table with a MemWAL, and files of rows in the order of their times."""
    place.joinpath("db").mkdir(parents=True)
    place.joinpath("in").mkdir()
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64())]
    empty = pa.table([[], []], schema=pa.schema(fields))
    lance.write_dataset(empty, str(table_of(place))).wal.initialize(buckets=BUCKETS, key="id")
    for number, rows in enumerate(parts(overlap=True)):
        path = place / "in" / f"{number}.json"
        path.write_text("\n".join(json.dumps({"id": i, "n": n}) for i, n in rows.items()))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def run(spark: Any, place: Path) -> None:
    """Upsert all files, one in each batch."""
    stream = spark.readStream.schema("id long, n long").option("maxFilesPerTrigger", 1)
    query = (
        doomed(stream.json(str(place / "in")))
        .writeStream.format("lance")
        .option("mode", "upsert")
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(table_of(place)))
    )
    query.awaitTermination()


def ensure_upserted_once(place: Path, official: Official) -> None:
    """Every region has every batch once and in order, and no row is lost, doubled or stale."""
    table = table_of(place)
    for batches in batches_of_regions(table):
        assert batches == list(range(FILES))
    ds = lance.dataset(str(table))
    assert _rows(ds.wal.to_table()) == sorted(AFTER.items())
    ds.wal.merge(flush=True)
    assert _rows(ds.to_table()) == sorted(AFTER.items())
    assert _rows(official.read(table)) == sorted(AFTER.items())
    ensure_sound(table)


def batches_of_regions(table: Path) -> list[list[int]]:
    """Return the batches of the entries of each region, in the order of the log."""
    base = open_snapshot(Location.parse(str(table)), Latest())
    found = []
    for folder in sorted(table.joinpath("_mem_wal").iterdir()):
        region = lance.ShardSnapshot(folder.name)._region
        entries = [e for e in read_entries(base, region, after=0) if not e.is_sentinel]
        found.append([max(entry.units.values()) for entry in entries])
    assert len(found) == BUCKETS
    return found


def _rows(found: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))
