"""Byte sequences of different lengths in one buffer, copied without a loop over them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

_AT_ONCE = 1 << 22


def put_rows(buffer: U8, places: I64, rows: U8) -> None:
    """Copy rows of equal length to places of a buffer."""
    count, width = rows.shape
    if not width:
        return
    step = max(1, _AT_ONCE // width)
    columns = np.arange(width)
    for start in range(0, count, step):
        part = slice(start, start + step)
        buffer[places[part, None] + columns] = rows[part]


def rows_at(buffer: U8, places: I64, width: int) -> U8:
    """Return rows of equal length at places of a buffer."""
    found = np.empty((len(places), width), np.uint8)
    step = max(1, _AT_ONCE // max(1, width))
    columns = np.arange(width)
    for start in range(0, len(places), step):
        part = slice(start, start + step)
        found[part] = buffer[places[part, None] + columns]
    return found


def put_runs(buffer: U8, places: I64, lengths: I64, data: U8) -> None:
    """Copy adjacent runs of data to places of a buffer."""
    at = runs(places, lengths)
    for start in range(0, len(at), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        buffer[at[part]] = data[part]


def runs(starts: I64, lengths: I64) -> I64:
    """Return the numbers from each start on, as many as its length."""
    before = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    numbers: I64 = np.arange(total, dtype=np.int64) + np.repeat(starts - before, lengths)
    return numbers
