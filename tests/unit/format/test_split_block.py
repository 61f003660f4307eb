"""Split-block bloom filters have what was inserted, and little else."""

from __future__ import annotations

import numpy as np
import pytest

from lancelake.format import hashing


def hashes(numbers: range) -> hashing.U64:
    rows = np.array(numbers, dtype="<i8").view(np.uint8).reshape(-1, 8)
    return hashing.hash_rows(rows)


def found(blocks: hashing.Blocks, wanted: hashing.U64) -> np.ndarray:
    masks = hashing.masks(wanted)
    inside = blocks[hashing.block_numbers(wanted, len(blocks))] & masks
    return (inside == masks).all(axis=1)


@pytest.mark.parametrize(
    ("items", "probability", "size"),
    [(8192, 0.00057, 32_768), (5, 0.1, 32), (0, 0.5, 32), (1_000_000, 0.01, 2_097_152)],
)
def test_sizes_are_those_of_official_releases(items: int, probability: float, size: int) -> None:
    assert hashing.size_bytes(items, probability) == size


def test_every_value_is_found_and_few_others() -> None:
    blocks = hashing.empty(hashing.size_bytes(1000, 0.01))
    hashing.insert(blocks, hashes(range(1000)))
    assert found(blocks, hashes(range(1000))).all()
    assert found(blocks, hashes(range(10_000, 20_000))).mean() < 0.02


def test_written_filters_are_read_back() -> None:
    blocks = hashing.empty(64)
    hashing.insert(blocks, hashes(range(3)))
    assert (hashing.decode(hashing.encode(blocks)) == blocks).all()
