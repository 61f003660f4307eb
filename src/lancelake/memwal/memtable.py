"""Memtable: rows of one generation in memory, with an index of their keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lancelake.memwal.shape import RowShape


class MemTable:
    """Rows of one generation in the order of their writes."""

    def __init__(self, shape: RowShape, generation: int) -> None:
        self.generation = generation
        self.last_position = 0
        """Position of the last WAL entry whose rows are in this table."""
        self.nbytes = 0
        self.num_rows = 0
        self._shape = shape
        self._batches: list[pa.RecordBatch] = []
        self._newest: dict[Any, int] = {}

    @property
    def num_batches(self) -> int:
        """Number of batches."""
        return len(self._batches)

    def add(self, batches: Sequence[pa.RecordBatch], position: int) -> None:
        """Add the rows of a WAL entry."""
        for batch in batches:
            keys = key_values(self._shape, batch)
            numbers = range(self.num_rows, self.num_rows + len(keys))
            self._newest.update(zip(keys, numbers, strict=True))
            self._batches.append(batch)
            self.num_rows += batch.num_rows
            self.nbytes += batch.nbytes
        self.last_position = position

    def newest(self) -> pa.Table:
        """Return the newest row of each key, tombstones included, in the order of the writes."""
        rows = pa.Table.from_batches(self._batches, schema=self._shape.arrow)
        if len(self._newest) == self.num_rows:
            return rows
        numbers = np.fromiter(self._newest.values(), dtype=np.int64, count=len(self._newest))
        return rows.take(pa.array(np.sort(numbers)))

    def find(self, wanted: Iterable[Any]) -> pa.Table:
        """Return the newest rows of some keys, tombstones included."""
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
        other._batches, other._newest = list(self._batches), dict(self._newest)
        return other


def key_values(shape: RowShape, batch: pa.RecordBatch) -> list[Any]:
    """Return the keys of rows as values that can be hashed."""
    columns = [column.to_pylist() for column in shape.key_columns(batch)]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
