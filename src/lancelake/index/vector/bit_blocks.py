"""Layouts of RQ codes in files: sign bits of 32 rows together, further bits of 64 values."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

_ROWS = 32
_VALUES = 64
_RUN = 16
_BYTE = 8
_LOW, _HIGH = np.uint8(0x0F), np.uint8(0xF0)
_NIBBLE = 4
# Places of 16 rows in a block, as vector instructions read them.
_ORDER = np.arange(_RUN).reshape(2, -1).T.reshape(-1)


def packed_rows(codes: Bytes) -> Bytes:
    """Return the bytes of rows in blocks of 32 rows, the nibbles of two rows in each byte.

    The rows that fill no block follow, column by column.
    """
    rows, width = codes.shape
    whole = rows - rows % _ROWS
    columns = codes[:whole].reshape(whole // _ROWS, _ROWS, width).transpose(0, 2, 1)
    first, second = columns[:, :, _ORDER], columns[:, :, _ORDER + _RUN]
    low = (first & _LOW) | (second << _NIBBLE)
    high = (first >> _NIBBLE) | (second & _HIGH)
    blocks = np.stack([low, high], axis=2).reshape(-1)
    return np.concatenate([blocks, codes[whole:].T.reshape(-1)])


def unpacked_rows(values: Bytes, rows: int, width: int) -> Bytes:
    """Return the rows of `packed_rows`."""
    whole = rows - rows % _ROWS
    blocks = values[: whole * width].reshape(whole // _ROWS, width, 2, _RUN)
    low, high = blocks[:, :, 0], blocks[:, :, 1]
    columns = np.empty((whole // _ROWS, width, _ROWS), dtype=np.uint8)
    columns[:, :, _ORDER] = (low & _LOW) | (high << _NIBBLE)
    columns[:, :, _ORDER + _RUN] = (low >> _NIBBLE) | (high & _HIGH)
    found = np.empty((rows, width), dtype=np.uint8)
    found[:whole] = columns.transpose(0, 2, 1).reshape(whole, width)
    found[whole:] = values[whole * width :].reshape(width, rows - whole).T
    return found


def blocked_width(dimension: int, bits: int) -> int:
    """Return the bytes of a row of `dimension` numbers of some bits."""
    return -(-dimension // _VALUES) * _VALUES * bits // _BYTE


def blocked_values(values: Bytes, bits: int) -> Bytes:
    """Return numbers of some bits, interleaved in blocks of 64 numbers."""
    rows, dimension = values.shape
    padded = np.zeros((rows, -(-dimension // _VALUES) * _VALUES), dtype=np.uint8)
    padded[:, :dimension] = values
    found = np.unpackbits(padded[:, :, np.newaxis], axis=2, count=bits, bitorder="little")
    blocks = np.empty((rows, padded.shape[1] // _VALUES, _VALUES * bits), dtype=np.uint8)
    blocks[:, :, _bit_places(bits)] = found.reshape(*blocks.shape)
    return np.packbits(blocks.reshape(rows, padded.shape[1] * bits), axis=1, bitorder="little")


def unblocked_values(blocked: Bytes, dimension: int, bits: int) -> Bytes:
    """Return the numbers of `blocked_values`."""
    rows = len(blocked)
    parts = -(-dimension // _VALUES)
    blocks = np.unpackbits(blocked, axis=1, bitorder="little").reshape(rows, parts, _VALUES * bits)
    found = blocks[:, :, _bit_places(bits)].reshape(rows, parts * _VALUES, bits)
    numbers = np.packbits(found, axis=2, bitorder="little")[:, :, 0]
    return np.ascontiguousarray(numbers[:, :dimension])


@lru_cache(maxsize=_BYTE)
def _bit_places(bits: int) -> npt.NDArray[np.int64]:
    """Return where the bits of 64 numbers are in a block, number by number."""
    places = [_bit_place(number, bit, bits) for number in range(_VALUES) for bit in range(bits)]
    return np.array(places)


def _bit_place(number: int, bit: int, bits: int) -> int:
    run, place = divmod(number, _RUN)
    lower = bits - 1 if bits in (3, 5, 7) else bits
    if bit >= lower:
        # The highest bits of an odd number of bits are in a plane of their own.
        return _VALUES * lower + _BYTE * (place % 8) + 2 * run + place // 8
    match lower:
        case 1:
            return number
        case 2:
            return _BYTE * place + 2 * run + bit
        case 4 if bits == lower:
            return _BYTE * (8 * run + place % 8) + 4 * (place // 8) + bit
        case 4:
            return _BYTE * (_RUN * (run // 2) + place) + 4 * (run % 2) + bit
        case 6 if run == 3:  # noqa: PLR2004 - the last of four runs fills the gaps of the others
            return _BYTE * (_RUN * (bit // 2) + place) + 6 + bit % 2
        case 6:
            return _BYTE * (_RUN * run + place) + bit
        case _:
            return _BYTE * number + bit
