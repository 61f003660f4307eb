"""Tables for the explorer: with images, vectors, texts, branches, and hostile content."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pyarrow as pa

import lancelake
from lancelake.memwal.writer import RegionWriter
from tests.support.memwal_tables import INLINE, NEW_REGION, new_table
from tests.support.memwal_tables import rows as keyed_rows

HOSTILE = "<img src=x onerror=hacked=1><script>hacked=1</script>"
TEXT = "a harbour at dawn "
DIMENSIONS = 4


def png(side: int = 2) -> bytes:
    """Return a grey image."""
    rows = b"".join(b"\0" + bytes([128] * side) for _ in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def photos(first: int, count: int) -> pa.Table:
    """Return rows with a value of every kind."""
    numbers = range(first, first + count)
    vectors = [[float(n), 1.0, -1.0, 0.0] for n in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "caption": [TEXT * 60 if n == 0 else f"{TEXT}{n}" for n in numbers],
            "image": pa.array([b"<script>" if n == 1 else png() for n in numbers], pa.binary()),
            "embedding": pa.array(vectors, pa.list_(pa.float32(), DIMENSIONS)),
            "labels": [["outdoor", "raw"]] * count,
            "large": pa.array([2**63 + n for n in numbers], pa.uint64()),
        }
    )


def build_photos(path: Path) -> Path:
    """Write a table with a text index, deletions, a tag and a branch."""
    ds = lancelake.write_dataset(photos(0, 30), path, max_rows_per_file=10)
    ds.create_scalar_index("caption", "INVERTED")
    ds = lancelake.write_dataset(photos(30, 10), path, mode="append")
    ds.delete("id = 3")
    ds.tags.create("launch", 1)
    branch = ds.create_branch("experiment")
    branch.delete("id = 4")
    return path


def build_hostile(path: Path) -> Path:
    """Write a table whose names, values, settings and message are markup."""
    rows = pa.table({HOSTILE: [HOSTILE], "n": [1]})
    ds = lancelake.write_dataset(rows, path, commit_message=HOSTILE)
    ds.update_config({HOSTILE: HOSTILE})
    return path


def build_large(path: Path, count: int) -> Path:
    """Write a table with about `count` versions, the newest of which has `count` fragments."""
    rows = pa.table({"n": pa.array(range(count), pa.int64())})
    ds = lancelake.write_dataset(rows.slice(0, 1), path)
    for number in range(count):
        ds.update_config({"step": str(number)})
    lancelake.write_dataset(rows.slice(1), path, mode="append", max_rows_per_file=1)
    return path


def build_mem_wal(path: Path) -> Path:
    """Write a table whose MemWAL has flushed rows, and rows only in the WAL."""
    base = new_table(path, (1, "a"))
    writer = RegionWriter(base, NEW_REGION, options=INLINE)
    writer.put(keyed_rows((2, "b"), (3, "c")))
    writer.flush()
    writer.put(keyed_rows((4, "d")))
    writer.close()
    return path
