"""Write the MemWAL tables of this folder with pylance 14.0.2.

Run with the interpreter of the official release: `.interop/14.0.2/bin/python make.py FOLDER`.
"""

import os
import sys
from pathlib import Path

import lance
import pyarrow as pa

KEY = "lance-schema:unenforced-primary-key"
POSITION = "lance-schema:unenforced-primary-key:position"
BUCKET = "4a388480-a25b-59a8-b058-24217f980256"
BERN = "cc8dc8a5-f858-5f2c-85e5-ddd4ffd10c6b"
ROME = "0e10c6a8-b8c5-5c36-897b-bc3af84bf39b"
UNSHARDED = "aa48498d-ac91-59e2-8452-69f46010ace2"


def simple(folder: Path) -> None:
    """Two generations, a repeated key, tombstones, a sentinel, and a WAL tail."""
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={KEY: "true"}),
            pa.field("name", pa.utf8()),
        ]
    )

    def rows(*pairs: tuple[int, str]) -> pa.Table:
        return pa.table([[k for k, _ in pairs], [v for _, v in pairs]], schema=schema)

    uri = str(folder / "simple")
    ds = lance.write_dataset(rows((1, "base"), (2, "base"), (3, "base")), uri)
    ds.initialize_mem_wal(bucket_column="id", num_buckets=2)
    with ds.mem_wal_writer(BUCKET) as writer:
        writer.put(rows((1, "first"), (4, "first")))
        writer.put(rows((4, "second"), (5, "second")))
        writer.delete(pa.table([[2]], schema=pa.schema([schema.field("id")])))
    with ds.mem_wal_writer(BUCKET) as writer:
        writer.put(rows((6, "third")))
    ds = lance.dataset(uri)
    ds.delete("id = 2")
    upsert = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    upsert = upsert.mark_sstables_as_compacted([lance.mem_wal.CompactedSsTable(BUCKET, 1)])
    upsert.execute(rows((1, "first"), (4, "second"), (5, "second")))
    writer = lance.dataset(uri).mem_wal_writer(BUCKET)
    writer.put(rows((7, "tail"), (1, "tail")))
    writer.delete(pa.table([[6]], schema=pa.schema([schema.field("id")])))


def composite(folder: Path) -> None:
    """A key of two columns, unsharded, with writer defaults."""
    schema = pa.schema(
        [
            pa.field("value", pa.float64()),
            pa.field("city", pa.utf8(), nullable=False, metadata={KEY: "true", POSITION: "1"}),
            pa.field("day", pa.int32(), nullable=False, metadata={KEY: "true", POSITION: "2"}),
        ]
    )
    uri = str(folder / "composite")
    ds = lance.write_dataset(pa.table([[0.5], ["Bern"], [1]], schema=schema), uri)
    ds.initialize_mem_wal(unsharded=True, maintained_indexes=[], max_memtable_rows=50)
    with ds.mem_wal_writer(UNSHARDED) as writer:
        writer.put(pa.table([[1.5, 2.5], ["Bern", "Rome"], [1, -7]], schema=schema))


def caught_up(folder: Path) -> None:
    """Regions of values, one of them empty, and an index that covers what is merged."""
    schema = pa.schema(
        [
            pa.field("city", pa.utf8(), nullable=False, metadata={KEY: "true"}),
            pa.field("value", pa.int32()),
        ]
    )

    def rows(*pairs: tuple[str, int]) -> pa.Table:
        return pa.table([[k for k, _ in pairs], [v for _, v in pairs]], schema=schema)

    uri = str(folder / "caught_up")
    ds = lance.write_dataset(rows(("Bern", 1), ("Rome", 1)), uri)
    ds.initialize_mem_wal(identity_column="city")
    with ds.mem_wal_writer(BERN) as writer:
        writer.put(rows(("Bern", 2)))
    ds.mem_wal_writer(ROME)
    ds = lance.dataset(uri)
    upsert = ds.merge_insert("city").when_matched_update_all().when_not_matched_insert_all()
    upsert = upsert.mark_sstables_as_compacted([lance.mem_wal.CompactedSsTable(BERN, 1)])
    upsert.execute(rows(("Bern", 2)))
    lance.dataset(uri).create_scalar_index("value", "BTREE")


if __name__ == "__main__":
    simple(Path(sys.argv[1]))
    composite(Path(sys.argv[1]))
    caught_up(Path(sys.argv[1]))
    # Leave the last writer as a killed process does: its rows stay in the WAL.
    os._exit(0)
