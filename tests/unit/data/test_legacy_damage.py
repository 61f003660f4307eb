"""A damaged legacy file is refused, or read as a table that Arrow accepts; it never harms."""

from __future__ import annotations

import random
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lancelake.data.legacy.legacy_file import LegacyFile
from lancelake.errors import CorruptTableError
from tests.support.legacy_tables import LegacyTable, legacy_table

FLIPS = 2000
BLOCKS = 20
MEMORY_BYTES = 16 * 1024 * 1024


def small() -> LegacyTable:
    words = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1, 1], pa.int8()), pa.array(["x", "yy"]))
    pair = pa.struct([("n", pa.int64()), ("t", pa.large_string())])
    batch = pa.record_batch(
        {
            "i": pa.array([1, 2, 3, 4], pa.int32()),
            "b": pa.array([True, False, True, True]),
            "v": pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float32(), 2)),
            "s": pa.array(["a", None, "ccc", "dd"]),
            "l": pa.array([["a"], [], ["b", "cc"], ["d"]], pa.large_list(pa.string())),
            "p": pa.array([[{"n": 1, "t": "x"}], [], [], [{"n": 2, "t": "y"}]], pa.list_(pair)),
            "e": pa.nulls(4),
            "m": pa.array([[None], [], [], [None, None]], pa.list_(pa.null())),
            "d": words,
        }
    )
    return legacy_table([batch, batch.slice(1, 2), batch])


TABLE = small()


def read_all(table: LegacyTable) -> None:
    """Read in both ways and check the result, or raise CorruptTableError."""
    reader = LegacyFile.open(
        table.source(), table.file, table.fields, manifest=table.manifest_source()
    )
    for batch in reader.batches(start=0, stop=reader.num_rows, batch_rows=4):
        batch.validate(full=True)
    offsets = np.arange(0, min(reader.num_rows, 1000), 2, dtype=np.uint64)
    reader.take(offsets).validate(full=True)


def is_refused(table: LegacyTable) -> bool:
    try:
        read_all(table)
    except CorruptTableError:
        return True
    return False


def test_the_undamaged_file_is_read() -> None:
    assert not is_refused(TABLE)


def test_every_truncation_is_refused() -> None:
    lengths = range(len(TABLE.data))
    read = [n for n in lengths if not is_refused(replace(TABLE, data=TABLE.data[:n]))]
    assert read == []


def test_every_truncation_of_the_dictionaries_is_refused() -> None:
    lengths = range(len(TABLE.manifest))
    read = [n for n in lengths if not is_refused(replace(TABLE, manifest=TABLE.manifest[:n]))]
    assert read == []


@pytest.mark.parametrize("seed", range(BLOCKS))
def test_flipped_bytes_do_no_harm(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(FLIPS // BLOCKS):
        data = bytearray(TABLE.data)
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        is_refused(replace(TABLE, data=bytes(data)))


def test_random_bytes_in_the_page_table_do_no_harm() -> None:
    chance = random.Random(0)
    for _ in range(300):
        data = bytearray(TABLE.data)
        at = chance.randrange(len(data) // 2, len(data) - 24)
        data[at : at + 8] = chance.choice([chance.randbytes(8), b"\xff" * 8, b"\xff" * 7 + b"\x7f"])
        is_refused(replace(TABLE, data=bytes(data)))


def test_damage_does_not_cost_memory() -> None:
    chance = random.Random(1)
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    for _ in range(100):
        data = bytearray(TABLE.data)
        for _ in range(8):
            data[chance.randrange(len(data))] = chance.choice([0, 0x7F, 0xFF])
        is_refused(replace(TABLE, data=bytes(data)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak + pa.total_allocated_bytes() - before < MEMORY_BYTES
