"""Expansion of live rows to all physical rows; deleted rows get arbitrary values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.arrays.hidden_nulls import all_valid
from lancelake.errors import SchemaMismatchError
from lancelake.format.file_version import FileVersion
from lancelake.format.schema import Field, Schema

# Maximum number of deleted rows that are added to one batch.
_PIECE_BYTES = 32 << 20
_LEAST_ROWS = 1024

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadRows:
    """Places batches of `Conformer` at the positions of a fragment's live rows."""

    schema: Schema
    version: FileVersion
    deleted: BitMap
    physical_rows: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a value for each physical row, or raise unless there is one for each live row."""
        if not self.deleted:
            yield from self._counted(batches, self.physical_rows)
            return
        live = _live_offsets(self.deleted, self.physical_rows)
        rank, end = 0, 0
        last: pa.RecordBatch | None = None
        for batch in self._counted(batches, len(live)):
            if not batch.num_rows:
                continue
            places = live[rank : rank + batch.num_rows]
            stop = int(places[-1]) + 1
            yield from self._pieces(batch, places, end, stop)
            rank, end, last = rank + batch.num_rows, stop, batch
        if last is not None:
            nothing = np.array([], dtype=np.int64)
            yield from self._pieces(last.slice(0, 1), nothing, end, self.physical_rows)

    def _counted(
        self, batches: Iterable[pa.RecordBatch], expected: int
    ) -> Iterator[pa.RecordBatch]:
        found = 0
        for batch in batches:
            found += batch.num_rows
            if found > expected:
                raise _miscounted(found, expected, "more")
            yield batch
        if found < expected:
            raise _miscounted(found, expected, "fewer")

    def _pieces(
        self, batch: pa.RecordBatch, places: Offsets, start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop, of which those at `places` come from the batch."""
        if stop - start == len(places):
            if len(places):
                yield batch
            return
        width = max(1, batch.nbytes // max(1, batch.num_rows))
        step = max(_LEAST_ROWS, _PIECE_BYTES // width)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            low, high = np.searchsorted(places, (first, last))
            yield self._piece(batch, places[low:high] - first, int(low), last - first)

    def _piece(self, batch: pa.RecordBatch, places: Offsets, low: int, rows: int) -> pa.RecordBatch:
        sources = np.full(rows, -1, dtype=np.int64)
        sources[places] = np.arange(low, low + len(places))
        gone = sources < 0
        near = np.maximum(np.maximum.accumulate(sources), min(low, batch.num_rows - 1))
        or_null, or_near = pa.array(sources, mask=gone), pa.array(near)
        arrays = [
            self._taken(field, array, or_null, or_near)
            for field, array in zip(self.schema.fields, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    def _taken(
        self, field: Field, array: pa.Array, or_null: pa.Array, or_near: pa.Array
    ) -> pa.Array:
        is_struct = field.logical_type == "struct"
        if field.nullable and not (is_struct and self.version is FileVersion.V2_0):
            return array.take(or_null)
        if _has_own_length(array.type):
            return all_valid(array.take(or_null))
        return array.take(or_near)


def _live_offsets(deleted: BitMap, physical_rows: int) -> Offsets:
    is_live = np.ones(physical_rows, dtype=np.bool_)
    is_live[np.frombuffer(deleted.to_array(), dtype=np.uint32)] = False
    return np.flatnonzero(is_live).astype(np.int64)


def _has_own_length(dtype: pa.DataType) -> bool:
    """Whether values differ in size, so that an empty one takes no space."""
    kinds = pa.types
    is_text = kinds.is_string(dtype) or kinds.is_large_string(dtype)
    is_binary = kinds.is_binary(dtype) or kinds.is_large_binary(dtype)
    return bool(is_text or is_binary or kinds.is_list(dtype) or kinds.is_large_list(dtype))


def _miscounted(found: int, expected: int, how: str) -> SchemaMismatchError:
    problem = f"there are {how} values than rows: {expected} rows"
    if how == "fewer":
        ended = "Stream ended before producing values for all rows in dataset"
        problem = f"{ended}: {problem}, {found} values"
    action = "Pass one value for each row."
    return SchemaMismatchError(problem, expected=expected, found=found, action=action)
