"""Layouts of RQ codes: what is packed is unpacked again."""

from __future__ import annotations

import numpy as np
import pytest

from lancelake.index.vector.rotated_codes import (
    block_values,
    blocked_width,
    pack_rows,
    unblock_values,
    unpack_rows,
)

CHANCE = np.random.default_rng(3)


@pytest.mark.parametrize("rows", [0, 1, 31, 32, 33, 100])
def test_rows_are_unpacked_as_they_were(rows: int) -> None:
    codes = CHANCE.integers(0, 256, (rows, 5), dtype=np.uint8)
    assert np.array_equal(unpack_rows(pack_rows(codes), rows, 5), codes)


def test_a_block_has_the_nibbles_of_two_rows_in_a_byte() -> None:
    codes = np.zeros((32, 1), dtype=np.uint8)
    codes[8], codes[24] = 0x21, 0x43
    packed = pack_rows(codes)
    assert (packed[1], packed[17]) == (0x31, 0x42)


@pytest.mark.parametrize("bits", range(1, 9))
def test_values_are_unblocked_as_they_were(bits: int) -> None:
    values = CHANCE.integers(0, 1 << bits, (7, 72)).astype(np.uint8)
    blocked = block_values(values, bits)
    assert blocked.shape == (7, blocked_width(72, bits))
    assert np.array_equal(unblock_values(blocked, 72, bits), values)


@pytest.mark.parametrize(
    ("bits", "number", "byte"),
    [(2, 17, 1), (3, 17, 1), (4, 9, 1), (5, 17, 1), (6, 17, 17), (7, 17, 17), (8, 17, 17)],
)
def test_place_of_the_lowest_bits_of_a_number(bits: int, number: int, byte: int) -> None:
    values = np.zeros((1, 64), dtype=np.uint8)
    values[0, number] = 1
    assert np.flatnonzero(block_values(values, bits)[0]).tolist() == [byte]
