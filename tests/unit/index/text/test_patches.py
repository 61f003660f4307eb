"""Exceptions of packed blocks."""

from __future__ import annotations

import numpy as np
import pytest

from lancelake.errors import CorruptTableError
from lancelake.index.text.packing import Patches, patch

# Number 2 of the first block has 5 above its 3 bits; those of the second, 300 and 1 above 1 bit.
DATA = np.frombuffer(bytes([2, 5, 0, 0xAC, 2, 255, 1]), np.uint8)
AT, STOPS = np.array([0, 2]), np.array([2, 7])
BITS, COUNTS = np.array([3, 1], np.uint8), np.array([1, 2], np.uint8)


def patched(counts: np.ndarray = COUNTS, stops: np.ndarray = STOPS) -> np.ndarray:
    values = np.ones((2, 256), np.uint32)
    patch(values, Patches(DATA, AT, stops, BITS, counts), "it")
    return values


def test_high_bits_are_added_above_the_packed_ones() -> None:
    values = patched()
    assert (values[0, 2], values[1, 0], values[1, 255]) == (5 * 8 + 1, 300 * 2 + 1, 1 * 2 + 1)
    assert int((values == 1).sum()) == 512 - 3


@pytest.mark.parametrize(
    ("counts", "stops"), [([1, 3], [2, 7]), ([1, 1], [2, 7]), ([1, 2], [1, 7]), ([1, 1], [2, 4])]
)
def test_other_numbers_of_exceptions_are_damage(counts: list[int], stops: list[int]) -> None:
    with pytest.raises(CorruptTableError, match="damaged"):
        patched(np.array(counts, np.uint8), np.array(stops))


def test_a_number_of_more_than_32_bits_is_damage() -> None:
    data = np.frombuffer(bytes([0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F]), np.uint8)
    one = np.array([1], np.uint8)
    found = Patches(data, np.array([0]), np.array([6]), one, one)
    with pytest.raises(CorruptTableError, match="damaged"):
        patch(np.ones((1, 256), np.uint32), found, "it")
