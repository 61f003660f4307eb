"""Split-block bloom filters, as Parquet defines them: blocks of eight 32-bit words.

A value sets one bit in every word of one block, chosen by its XXH64 hash.
"""

from __future__ import annotations

import functools
import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lancelake.format.xxh64 import U64

WORDS = 8
_WORD_BYTES = 4
_WORD_BITS = 8 * _WORD_BYTES
BLOCK_BYTES = WORDS * _WORD_BYTES
_MIN_LOG2_BYTES = 5
_MAX_LOG2_BYTES = 27
# Terms of the false-positive rate; further ones do not change a 64-bit number.
_SUMMANDS = 750
_SALTS = np.array(
    [
        0x47B6137B,
        0x44974D91,
        0x8824AD5B,
        0xA2B7289D,
        0x705495C7,
        0x2DF1424B,
        0x9EFC4947,
        0x5C6BFB31,
    ],
    dtype=np.uint32,
)

Blocks: TypeAlias = npt.NDArray[np.uint32]


@functools.lru_cache(maxsize=64)
def size_bytes(items: int, probability: float) -> int:
    """Return the size of a filter: the least power of two for a false-positive rate."""
    low, high = 0, 64
    while high > low + 1:
        middle = (low + high) // 2
        if _false_positives(items, 2.0**middle) <= probability:
            high = middle
        else:
            low = middle
    return 1 << min(max(high, _MIN_LOG2_BYTES), _MAX_LOG2_BYTES)


def empty(size: int) -> Blocks:
    """Return an empty filter of a size in bytes."""
    return np.zeros((size // BLOCK_BYTES, WORDS), dtype=np.uint32)


def insert(blocks: Blocks, hashes: U64) -> None:
    """Add values by their hashes."""
    starts = (block_numbers(hashes, len(blocks)) * _WORD_BITS).astype(np.uint32)
    low = hashes.astype(np.uint32)
    bits = np.empty_like(low)
    # One word of all blocks at a time: its bits fit the fastest cache of a processor.
    is_set = np.empty(len(blocks) * _WORD_BITS, dtype=np.bool_)
    for word, salt in enumerate(_SALTS):
        is_set.fill(False)
        np.multiply(low, salt, out=bits)
        np.right_shift(bits, np.uint32(27), out=bits)
        np.add(bits, starts, out=bits)
        is_set[bits.astype(np.intp)] = True
        blocks[:, word] |= np.packbits(is_set, bitorder="little").view("<u4")


def block_numbers(hashes: U64, blocks: int) -> npt.NDArray[np.int64]:
    """Return the block of each value in a filter with this many blocks."""
    return (((hashes >> np.uint64(32)) * np.uint64(blocks)) >> np.uint64(32)).astype(np.int64)


def masks(hashes: U64) -> Blocks:
    """Return the bits that each value sets in the words of its block."""
    return np.left_shift(np.uint32(1), _bits(hashes))


def contains(blocks: Blocks, hashes: U64) -> npt.NDArray[np.bool_]:
    """Return for each value whether a filter may have it."""
    wanted = masks(hashes)
    found = blocks[block_numbers(hashes, len(blocks))] & wanted
    return np.asarray((found == wanted).all(axis=1))


def encode(blocks: Blocks) -> bytes:
    """Write a filter."""
    return blocks.astype("<u4", copy=False).tobytes()


def decode(data: bytes) -> Blocks:
    """Read a filter, whose size is a multiple of that of a block."""
    return np.frombuffer(data, dtype="<u4").reshape(-1, WORDS)


def _bits(hashes: U64) -> Blocks:
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return (low[:, None] * _SALTS[None, :]) >> np.uint32(27)


def _false_positives(items: int, size: float) -> float:
    """Return the false-positive rate of a filter (Putze, Sanders and Singler, equation 3)."""
    bits = size * 8
    if not items:
        return 0.0
    if items / bits > 2:  # noqa: PLR2004  # more values than the sum below can add up
        return 1.0
    load = BLOCK_BYTES * 8 * items / bits
    rate = 0.0
    for count in range(_SUMMANDS - 1, 0, -1):
        poisson = count * math.log(load) - load - math.lgamma(count + 1)
        hit = 1.0 - (1.0 - 1.0 / _WORD_BITS) ** count
        rate += math.exp(poisson + WORDS * math.log(hit))
    return min(rate, 1.0)
