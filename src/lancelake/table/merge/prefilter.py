"""Prefilter of keys before the join, similar to a Bloom filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.scan.live_rows import Mask

# Slots per key: about one in this many other keys passes.
_SLOTS_PER_KEY = 16
_LEAST_BITS = 16
_MOST_BITS = 26
# Keys within a range of this many slots have one slot each.
_RANGE_BITS = 25
_FACTOR = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1

Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sieve:
    """Slots occupied by the keys of a source; a key whose slot is free is not among them.

    Consecutive keys occupy consecutive slots, so that a table sorted by key is looked up in memory
    order.
    """

    columns: tuple[int, ...]
    least: int
    bits: int
    taken: Mask

    @staticmethod
    def of(keys: Sequence[pa.ChunkedArray]) -> Sieve | None:
        """Insert the keys by their fixed-width columns; None if there is no such column."""
        columns = tuple(i for i, column in enumerate(keys) if _is_plain(column.type))
        if not columns:
            return None
        wanted = max(1, len(keys[0]) * _SLOTS_PER_KEY)
        bits = min(_MOST_BITS, max(_LEAST_BITS, (wanted - 1).bit_length()))
        least, span = _range(keys[columns[0]]) if len(columns) == 1 else (0, 0)
        if span.bit_length() <= _RANGE_BITS:
            bits = max(bits, span.bit_length())
        taken = np.zeros(1 << bits, dtype=np.bool_)
        sieve = Sieve(columns=columns, least=least, bits=bits, taken=taken)
        for batch in pa.table(keys, names=[str(i) for i in range(len(keys))]).to_batches():
            taken[sieve._slots(batch.columns)] = True
        return sieve

    def passes(self, keys: Sequence[pa.Array]) -> Mask:
        """Whether each key may be among those of the source."""
        mask: Mask = self.taken[self._slots(keys)]
        return mask

    def _slots(self, keys: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        number = key_numbers(keys[self.columns[0]])
        for place, column in enumerate(self.columns[1:], start=1):
            factor = np.uint64((_FACTOR * place) & _WORD)
            number = number + key_numbers(keys[column]) * factor
        if self.least:
            number = number - np.uint64(self.least & _WORD)
        folded = number >> np.uint64(self.bits)
        folded ^= number
        folded &= np.uint64((1 << self.bits) - 1)
        return folded.view(np.int64)


def _range(keys: pa.ChunkedArray) -> tuple[int, int]:
    """Return the smallest key as a number, and its distance to the greatest."""
    ends = [key_numbers(chunk).view(np.int64) for chunk in keys.drop_null().chunks if len(chunk)]
    if not ends:
        return 0, 0
    least, greatest = min(int(e.min()) for e in ends), max(int(e.max()) for e in ends)
    return least, greatest - least


def _is_plain(dtype: pa.DataType) -> bool:
    return pa.types.is_primitive(dtype) and dtype.bit_width in (8, 16, 32, 64)


def key_numbers(array: pa.Array) -> Numbers:
    """Return the bits of fixed-width values as numbers; the number of a null is arbitrary."""
    width = array.type.bit_width // 8
    data = np.frombuffer(array.buffers()[1], dtype=f"<i{width}")
    values = data[array.offset : array.offset + len(array)]
    return values.astype(np.int64, copy=False).view(np.uint64)
