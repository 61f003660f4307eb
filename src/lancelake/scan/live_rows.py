"""Live rows of a fragment: masks, counts and positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.column_reader import RowOffsets

Mask = npt.NDArray[np.bool_]


def to_mask(truth: pa.BooleanArray) -> Mask:
    """Return true where a condition is true, false where it is null."""
    if not len(truth):
        return np.zeros(0, dtype=np.bool_)
    validity, values = truth.buffers()
    mask = _bits(values, truth.offset, len(truth))
    if truth.null_count:
        mask &= _bits(validity, truth.offset, len(truth))
    return mask


def _bits(buffer: pa.Buffer, offset: int, length: int) -> Mask:
    packed = np.frombuffer(buffer, dtype=np.uint8)
    bits = np.unpackbits(packed, count=offset + length, bitorder="little")
    mask: Mask = bits[offset:].view(np.bool_)
    return mask


@dataclass(frozen=True, slots=True)
class LiveRows:
    """The rows of a fragment that are not deleted."""

    deleted: BitMap
    live_before: int = 0

    def mask(self, start: int, stop: int) -> Mask | None:
        """Return true for the live rows of a range; None when all are live."""
        if not self.deleted or not self.deleted.range_cardinality(start, stop):
            return None
        mask = np.ones(stop - start, dtype=np.bool_)
        gone = np.frombuffer(
            (self.deleted & BitMap(range(start, stop))).to_array(), dtype=np.uint32
        )
        mask[gone.astype(np.int64) - start] = False
        return mask

    def count(self, start: int, stop: int) -> int:
        """Count the live rows of a range."""
        return stop - start - int(self.deleted.range_cardinality(start, stop))

    def stop_after(self, count: int, start: int, stop: int) -> int:
        """Return where a range ends that has this many live rows, or `stop` if none does."""
        end = min(start + count, stop)
        while end < stop and (missing := count - self.count(start, end)):
            end = min(end + missing, stop)
        return end

    def ranks(self, offsets: RowOffsets) -> RowOffsets:
        """Number live rows in scan order of the version."""
        if not self.deleted:
            return offsets + np.uint64(self.live_before)
        gone = np.frombuffer(self.deleted.to_array(), dtype=np.uint32)
        before = np.searchsorted(gone, offsets.astype(np.uint32), side="left").astype(np.uint64)
        ranks: RowOffsets = offsets - before + np.uint64(self.live_before)
        return ranks

    def offsets_of(self, ranks: RowOffsets) -> RowOffsets:
        """Return the offsets of the rows with these numbers among the live ones."""
        if not self.deleted:
            return ranks
        gone = np.frombuffer(self.deleted.to_array(), dtype=np.uint32).astype(np.int64)
        # The i-th deleted row has gone[i] - i live rows before it.
        shift = np.searchsorted(gone - np.arange(len(gone)), ranks.astype(np.int64), side="right")
        return ranks + shift.astype(np.uint64)
