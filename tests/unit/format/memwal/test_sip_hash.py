from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.format import hashing

# Written by an official release for int64 5, int64 -7, "a" and "hello world".
VECTORS = [
    (b"\x00" + (5).to_bytes(8, "little"), 0xB8E1D66DC34A747A),
    (b"\x00" + (-7).to_bytes(8, "little", signed=True), 0xEE841A87F2C68F8E),
    (b"\x00a\xff", 0x2167E9C523E0FC15),
    (b"\x00hello world\xff", 0xD16DCAB846AB7BE9),
]


@pytest.mark.parametrize(("data", "expected"), VECTORS)
def test_hashes_are_those_of_the_official_release(data: bytes, expected: int) -> None:
    assert hashing.hashes(pa.array([data], pa.large_binary())).tolist() == [expected]


def test_strings_of_different_lengths_are_hashed_together() -> None:
    values = pa.array([b"skipped", *(data for data, _ in VECTORS)], pa.large_binary())[1:]
    assert hashing.hashes(values).tolist() == [expected for _, expected in VECTORS]
