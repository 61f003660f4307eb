"""Memtable: rows of one generation in memory, with an index of their keys for lookups."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.memwal.shape import RowShape

_ROW = "_lancelake_row"


class MemTable:
    """Rows of one generation in the order of their writes.

    Keys are indexed when one is looked up, not by the write, whose caller waits.
    """

    def __init__(self, shape: RowShape, generation: int) -> None:
        self.generation = generation
        self.last_position = 0
        """Position of the last WAL entry whose rows are in this table."""
        self.nbytes = 0
        self.num_rows = 0
        self._shape = shape
        self._batches: list[pa.RecordBatch] = []
        self._lock = threading.Lock()
        self._newest: dict[Any, int] = {}
        self._indexed_batches = 0
        self._indexed_rows = 0

    @property
    def num_batches(self) -> int:
        """Number of batches."""
        return len(self._batches)

    def add(self, batches: Sequence[pa.RecordBatch], position: int) -> None:
        """Add the rows of a WAL entry."""
        for batch in batches:
            self._batches.append(batch)
            self.num_rows += batch.num_rows
            self.nbytes += batch.nbytes
        self.last_position = position

    def newest(self) -> pa.Table:
        """Return the newest row of each key, tombstones included, in the order of the writes."""
        rows = pa.Table.from_batches(self._batches, schema=self._shape.arrow)
        return last_of_each_key(rows, self._shape.keys)

    def find(self, wanted: Iterable[Any]) -> pa.Table:
        """Return the newest rows of some keys, tombstones included."""
        with self._lock:
            self._index()
            numbers = sorted(self._newest[key] for key in wanted if key in self._newest)
        rows = pa.Table.from_batches(self._batches, schema=self._shape.arrow)
        return rows.take(pa.array(numbers, pa.int64()))

    def copy(self) -> MemTable:
        """Return a copy that later writes do not change."""
        other = MemTable(self._shape, self.generation)
        other.last_position, other.nbytes, other.num_rows = (
            self.last_position,
            self.nbytes,
            self.num_rows,
        )
        with self._lock:
            # Here, so that the next copy has only rows written since to index.
            self._index()
            other._batches, other._newest = list(self._batches), dict(self._newest)
            other._indexed_batches, other._indexed_rows = self._indexed_batches, self._indexed_rows
        return other

    def _index(self) -> None:
        for batch in self._batches[self._indexed_batches :]:
            keys = key_values(self._shape, batch)
            numbers = range(self._indexed_rows, self._indexed_rows + len(keys))
            self._newest.update(zip(keys, numbers, strict=True))
            self._indexed_rows += len(keys)
            self._indexed_batches += 1


def last_of_each_key(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the last row of each key, in the order of the rows."""
    last = _last_of_each_number(rows.column(keys[0])) if len(keys) == 1 else None
    if last is None:
        numbers = pa.array(np.arange(rows.num_rows))
        numbered = rows.select(list(keys)).append_column(_ROW, numbers)
        found = numbered.group_by(list(keys)).aggregate([(_ROW, "max")])
        last = found.column(f"{_ROW}_max").to_numpy()
    return rows if len(last) == rows.num_rows else rows.take(pa.array(np.sort(last)))


def _last_of_each_number(keys: pa.ChunkedArray) -> npt.NDArray[np.int64] | None:
    """Return the last row of each integer; None for other keys, which cannot be sorted so fast."""
    if not pa.types.is_integer(keys.type) or keys.null_count or not len(keys):
        return None
    values = keys.to_numpy()
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    return np.asarray(order[np.append(ordered[1:] != ordered[:-1], True)])


def key_values(shape: RowShape, batch: pa.RecordBatch) -> list[Any]:
    """Return the keys of rows as values that can be hashed."""
    columns = [column.to_pylist() for column in shape.key_columns(batch)]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
