"""Row id sequence of a fragment, in physical row order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lancelake.errors import CorruptTableError
from lancelake.format.rowids import codec, segment
from lancelake.format.rowids.segment import Segment, U64Array


@dataclass(frozen=True, slots=True)
class RowIdSequence:
    """Ids in row order."""

    segments: tuple[Segment, ...]

    @staticmethod
    def decode(data: bytes, *, physical_rows: int) -> RowIdSequence:
        """Read a sequence, which must have an id for each physical row."""
        segments = codec.decode_row_ids(data)
        count = sum(segment.length(s) for s in segments)
        if count != physical_rows:
            msg = f"{count} row ids for {physical_rows} rows"
            raise CorruptTableError(msg, found=count, expected=physical_rows)
        return RowIdSequence(segments)

    @staticmethod
    def of(values: U64Array) -> RowIdSequence:
        """Build the sequence of these ids in one segment."""
        return RowIdSequence((segment.build(values),))

    def encode(self) -> bytes:
        """Write the sequence."""
        return codec.encode_row_ids(self.segments)

    def __len__(self) -> int:
        return sum(segment.length(s) for s in self.segments)

    def values(self) -> U64Array:
        """All ids in row order."""
        parts = [segment.values(s) for s in self.segments]
        return np.concatenate(parts) if parts else np.array([], dtype=np.uint64)
