"""Top rows of a partition in some order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_CHUNK_ROWS = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class SortKey:
    """A column to sort by."""

    column: str
    ascending: bool
    nulls_first: bool

    @property
    def arrow(self) -> tuple[str, str, str]:
        """The key as Arrow takes it."""
        order = "ascending" if self.ascending else "descending"
        return self.column, order, "at_start" if self.nulls_first else "at_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopRows:
    """The first `count` rows by these keys."""

    keys: tuple[SortKey, ...]
    count: int

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the first rows; rows that tie with the last one may be left out."""
        held: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            if rows >= _CHUNK_ROWS + self.count:
                held = self._first(held)
                rows = sum(part.num_rows for part in held)
        if held:
            yield from self._first(held)

    def _first(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        table = pa.Table.from_batches(batches)
        chosen = pc.sort_indices(table, sort_keys=[key.arrow for key in self.keys])
        first: list[pa.RecordBatch] = (
            table.take(chosen.slice(0, self.count)).combine_chunks().to_batches()
        )
        return first


def can_sort(dtype: pa.DataType) -> bool:
    """Whether Arrow sorts values of this type as Spark does."""
    exact = pa.types.is_integer(dtype) or pa.types.is_decimal128(dtype)
    text = dtype in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return bool(exact or text or pa.types.is_temporal(dtype))
