"""Benchmark tables, created once with official Lance."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

ROOT = Path(__file__).parent.parent / ".benchdata"
_SEED = 20_260_101


def wide(gigabytes: float) -> str:
    """20 columns: numbers, short text and a vector of 64 floats; about 380 bytes a row."""
    path = ROOT / f"wide-{gigabytes:g}gb.lance"
    if not path.exists():
        rows = int(gigabytes * 1e9 / 380)
        batches = _wide_batches(rows)
        schema = next(_wide_batches(1)).schema
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        lance.write_dataset(reader, str(path), max_rows_per_file=500_000)
    return str(path)


def doubles(rows: int, columns: int) -> str:
    """Columns `c0`, `c1`, ... of doubles between 0 and 1."""
    path = ROOT / f"doubles-{rows}-{columns}.lance"
    schema = pa.schema([(f"c{i}", pa.float64()) for i in range(columns)])
    return _random_rows(path, schema, rows)


def vectors(rows: int, width: int) -> str:
    """A double `c0` between 0 and 1 beside a vector of floats."""
    path = ROOT / f"vectors-{rows}-{width}.lance"
    schema = pa.schema([("c0", pa.float64()), ("v", pa.list_(pa.float32(), width))])
    return _random_rows(path, schema, rows)


def many_versions(count: int) -> str:
    """A small table with many versions."""
    path = ROOT / f"versions-{count}.lance"
    if not path.exists():
        table = pa.table({"a": range(100), "b": ["x"] * 100})
        ds = lance.write_dataset(table, str(path))
        for number in range(count - 1):
            ds.update_config({"number": str(number)})
    return str(path)


def many_fragments(count: int) -> str:
    """A table of many fragments with ten rows each."""
    path = ROOT / f"fragments-{count}.lance"
    if not path.exists():
        rows = 10 * count
        table = pa.table({"a": range(rows), "b": ["x"] * rows})
        lance.write_dataset(table, str(path), max_rows_per_file=10)
    return str(path)


def indexed(rows: int) -> str:
    """A shuffled key with a BTREE, a group of a thousand with a BITMAP, a number and a text."""
    path = ROOT / f"indexed-{rows}.lance"
    if not path.exists():
        chance = np.random.default_rng(_SEED)
        key = chance.permutation(rows)
        columns = {"id": key, "k": key % 1000, "v": chance.random(rows)}
        texts = pa.array(key % 1_000_003).cast(pa.string())
        table = pa.table({**columns, "s": texts})
        made = lance.write_dataset(table, str(path), max_rows_per_file=max(1, rows // 10))
        made.create_scalar_index("id", "BTREE")
        made.create_scalar_index("k", "BITMAP")
    return str(path)


def grown(rows: int) -> str:
    """The indexed table with 1 % more rows, which its indices do not cover."""
    path = ROOT / f"grown-{rows}.lance"
    if not path.exists():
        shutil.copytree(indexed(rows), path)
        more = np.arange(rows, rows + rows // 100)
        texts = pa.array(more % 1_000_003).cast(pa.string())
        table = pa.table({"id": more, "k": more % 1000, "v": more / rows, "s": texts})
        lance.write_dataset(table, str(path), mode="append")
    return str(path)


def labelled(rows: int) -> str:
    """The columns of the indexed table and one of labels, without indices."""
    path = ROOT / f"labelled-{rows}.lance"
    if not path.exists():
        table = lance.dataset(indexed(rows)).to_table(["id", "k", "s"])
        key = table["k"].to_numpy()
        labels = pa.array([f"label {number}" for number in range(1000)])
        pairs = labels.take(pa.array(np.column_stack([key, (key * 7 + 1) % 1000]).ravel()))
        ends = pa.array(np.arange(0, 2 * rows + 1, 2, dtype=np.int32))
        table = table.append_column("l", pa.ListArray.from_arrays(ends, pairs))
        lance.write_dataset(table, str(path), max_rows_per_file=max(1, rows // 10))
    return str(path)


def shuffled(rows: int) -> str:
    """A key in no order, and nothing else."""
    path = ROOT / f"shuffled-{rows}.lance"
    if not path.exists():
        key = np.random.default_rng(_SEED).permutation(rows)
        lance.write_dataset(pa.table({"id": key}), str(path), max_rows_per_file=1_000_000)
    return str(path)


def plain(rows: int, *, columns: int, fragments: int) -> str:
    """A counting key beside numbers and one column of short text."""
    path = ROOT / f"plain-{rows}-{columns}-{fragments}.lance"
    if not path.exists():
        step = min(500_000, -(-rows // fragments))
        batches = (
            plain_batch(np.arange(start, min(start + step, rows)), columns)
            for start in range(0, rows, step)
        )
        reader = pa.RecordBatchReader.from_batches(
            plain_batch(np.arange(1), columns).schema, batches
        )
        size = -(-rows // fragments)
        lance.write_dataset(reader, str(path), max_rows_per_file=size, data_storage_version="2.1")
    return str(path)


def _random_rows(path: Path, schema: pa.Schema, rows: int, size: int = 5000) -> str:
    chance = np.random.default_rng(_SEED)

    def column(field: pa.Field) -> pa.Array:
        if pa.types.is_fixed_size_list(field.type):
            width = field.type.list_size
            values = chance.random(size * width, dtype=np.float32)
            return pa.FixedSizeListArray.from_arrays(pa.array(values), width)
        return pa.array(chance.random(size))

    if not path.exists():
        batches = (
            pa.record_batch([column(field) for field in schema], schema=schema)
            for _ in range(0, rows, size)
        )
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        lance.write_dataset(reader, str(path), data_storage_version="2.1")
    return str(path)


def plain_batch(keys: np.ndarray, columns: int) -> pa.RecordBatch:
    """Return rows for keys: `key`, `c0`, `c1`, ... and the text `s`."""
    chance = np.random.default_rng(int(keys[0]))
    values = {f"c{i}": pa.array(chance.random(len(keys))) for i in range(columns - 2)}
    text = pa.array(keys % 10_007).cast(pa.string())
    return pa.record_batch({"key": pa.array(keys), **values, "s": text})


def _wide_batches(rows: int, size: int = 20_000) -> Iterator[pa.RecordBatch]:
    chance = np.random.default_rng(_SEED)
    for start in range(0, rows, size):
        count = min(size, rows - start)
        columns: dict[str, pa.Array] = {
            f"c{i}": pa.array(chance.integers(0, 1 << 40, count)) for i in range(16)
        }
        columns["f0"] = pa.array(chance.random(count))
        columns["f1"] = pa.array(chance.random(count))
        columns["s"] = pa.array([f"name-{n}" for n in chance.integers(0, 1 << 30, count)])
        vectors = pa.array(chance.random(count * 64, dtype=np.float32))
        columns["v"] = pa.FixedSizeListArray.from_arrays(vectors, 64)
        yield pa.record_batch(columns)
