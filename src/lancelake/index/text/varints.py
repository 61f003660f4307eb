"""Variable-length integers: seven bits per byte, the lowest first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lancelake.errors import CorruptTableError

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]

_LOW = np.uint8(0x7F)
_MOST_BYTES = 5


def decode(data: U8, what: str) -> U32:
    """Decode all integers of a sequence of bytes."""
    if not len(data):
        return np.zeros(0, np.uint32)
    ends = np.flatnonzero(data <= _LOW)
    if not len(ends) or ends[-1] != len(data) - 1:
        raise CorruptTableError(f"{what} ends within a number")
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if int(lengths.max()) > _MOST_BYTES:
        raise CorruptTableError(f"{what} has a number of more than 32 bits")
    shifts = (np.arange(len(data)) - np.repeat(starts, lengths)) * 7
    parts = (data & _LOW).astype(np.uint64) << shifts.astype(np.uint64)
    return np.add.reduceat(parts, starts).astype(np.uint32)
