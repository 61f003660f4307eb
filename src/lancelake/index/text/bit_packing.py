"""Bit packing of blocks of 128 or 256 numbers, as posting lists store them.

The numbers of a block are dealt out to four lanes, or to eight. Each lane packs its 32 numbers,
lowest bits first, into 32-bit words, and the words of the lanes alternate.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]

BLOCK = 128
"""Numbers of a block as it is written."""
_PER_LANE = 32
WORD_BITS = 32
"""The most bits of a number."""


def widths(blocks: U32) -> U8:
    """Return the number of bits that the largest number of each block needs."""
    most = np.bitwise_or.reduce(blocks, axis=1).astype(np.float64)
    # The exponent of a float with 53 bits of precision is exact for 32-bit numbers.
    bits: U8 = np.frexp(most)[1].astype(np.uint8)
    return bits


def packed_size(bits: int, block: int = BLOCK) -> int:
    """Return the bytes of a packed block of some numbers."""
    return block // _PER_LANE * 4 * bits


def pack(blocks: U32, bits: int) -> U8:
    """Pack blocks, one per row, with the same number of bits."""
    count, block = blocks.shape
    lanes = block // _PER_LANE
    values = blocks.reshape(count, _PER_LANE, lanes).astype(np.uint64)
    words = np.zeros((count, bits, lanes), np.uint64)
    for place in range(_PER_LANE if bits else 0):
        word, shift = divmod(place * bits, WORD_BITS)
        words[:, word] |= values[:, place] << np.uint64(shift)
        if shift + bits > WORD_BITS:
            words[:, word + 1] |= values[:, place] >> np.uint64(WORD_BITS - shift)
    # What a number has beyond its word is cut off here, and was added to the next one.
    return words.astype("<u4").reshape(count, bits * lanes).view(np.uint8)


def unpack(data: U8, bits: int, block: int = BLOCK) -> U32:
    """Unpack blocks of some numbers, one per row, with the same number of bits."""
    count, lanes = len(data), block // _PER_LANE
    if not bits:
        return np.zeros((count, block), np.uint32)
    words = np.ascontiguousarray(data).view("<u4").reshape(count, bits, lanes).astype(np.uint64)
    values = np.empty((count, _PER_LANE, lanes), np.uint64)
    mask = np.uint64((1 << bits) - 1)
    for place in range(_PER_LANE):
        word, shift = divmod(place * bits, WORD_BITS)
        part = words[:, word] >> np.uint64(shift)
        if shift + bits > WORD_BITS:
            part = part | (words[:, word + 1] << np.uint64(WORD_BITS - shift))
        values[:, place] = part & mask
    return values.reshape(count, block).astype(np.uint32)
