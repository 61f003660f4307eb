"""Damaged bitmaps are detected before native code reads them."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from pyroaring import BitMap

from lancelake.format.row_address import bitmap_of_mask, ensure_well_formed

ARRAY = BitMap([1, 5, 70_000])
DENSE = BitMap(range(0, 20_000, 2))
RUNS = BitMap(range(100, 60_000))
RUNS.run_optimize()
MANY_RUNS = BitMap(i for base in range(6) for i in range(base << 16, (base << 16) + 500))
MANY_RUNS.run_optimize()


def plain(*containers: tuple[int, list[int]]) -> bytes:
    """Spell a bitmap of array containers by hand."""
    heads = b"".join(struct.pack("<HH", key, len(values) - 1) for key, values in containers)
    bodies = [struct.pack(f"<{len(v)}H", *v) for _, v in containers]
    offsets, position = b"", 8 + 8 * len(containers)
    for body in bodies:
        offsets += struct.pack("<I", position)
        position += len(body)
    return struct.pack("<II", 0x303A, len(containers)) + heads + offsets + b"".join(bodies)


def run(key: int, cardinality: int, pairs: list[tuple[int, int]]) -> bytes:
    """Spell a bitmap of one run container by hand."""
    body = b"".join(struct.pack("<HH", first, rest) for first, rest in pairs)
    head = struct.pack("<I", 0x303B) + b"\x01" + struct.pack("<HH", key, cardinality - 1)
    return head + struct.pack("<H", len(pairs)) + body


@pytest.mark.parametrize(
    "bitmap",
    [BitMap(), ARRAY, DENSE, RUNS, MANY_RUNS],
    ids=["none", "array", "dense", "run", "runs"],
)
def test_every_kind_of_container_is_well_formed(bitmap):
    ensure_well_formed(bytes(bitmap.serialize()))


def test_the_spelling_by_hand_is_that_of_the_library():
    assert plain((0, [1, 5]), (1, [4464])) == bytes(ARRAY.serialize())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x3a\x30\x00",
        b"\x3c\x30\x00\x00\x00\x00\x00\x00",
        struct.pack("<II", 0x303A, 1 << 17),
        plain((0, [1]))[:-1],
        plain((0, [1])) + b"\0",
        plain((1, [1]), (0, [1])),
        plain((1, [1]), (1, [2])),
        plain((0, [5, 1])),
        plain((0, [5, 5])),
        bytes(DENSE.serialize())[:-1],
        bytes(DENSE.serialize())[:-8] + b"\xff" * 8,
        run(0, 10, [(0, 5)]),
        run(0, 12, [(0, 5), (3, 5)]),
        run(0, 12, [(10, 5), (0, 5)]),
        run(0, 20, [(65530, 19)]),
        run(0, 1, []),
    ],
)
def test_damage_is_found(data):
    with pytest.raises(ValueError):
        ensure_well_formed(data)


def test_a_run_by_hand_is_well_formed():
    ensure_well_formed(run(0, 12, [(0, 5), (10, 5)]))


@pytest.mark.parametrize("share", [0.0, 0.001, 0.07, 0.5, 1.0])
@pytest.mark.parametrize("length", [0, 1, 9, 65_536, 65_537, 200_001])
def test_a_mask_becomes_the_bitmap_of_its_positions(length: int, share: float) -> None:
    mask = np.random.default_rng(5).random(length) < share
    found = bitmap_of_mask(mask)
    assert found == BitMap(np.flatnonzero(mask).tolist())
    ensure_well_formed(bytes(found.serialize()))
