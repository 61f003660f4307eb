"""Bloom filter of a generation's keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import CorruptTableError
from lancelake.format import split_block
from lancelake.format.memwal import key_bytes, sip_hash

# Official releases size every filter for 8192 keys with one false positive in 1754.
SIZE_BYTES = 32768


def build(columns: Sequence[pa.Array]) -> bytes:
    """Write the filter of keys, given by column."""
    blocks = split_block.empty(SIZE_BYTES)
    if len(columns[0]):
        split_block.insert(blocks, _hashes(columns))
    return split_block.encode(blocks)


def is_usable(kinds: Sequence[pa.DataType]) -> bool:
    """Whether the filter has the values of keys of these types."""
    return all(key_bytes.is_hashed(kind) for kind in kinds)


def may_contain(data: bytes, columns: Sequence[pa.Array]) -> npt.NDArray[np.bool_]:
    """Return for each key whether the generation may have it; the types must be usable."""
    if not data or len(data) % split_block.BLOCK_BYTES:
        raise CorruptTableError(f"a bloom filter has {len(data)} bytes")
    return split_block.contains(split_block.decode(data), _hashes(columns))


def _hashes(columns: Sequence[pa.Array]) -> sip_hash.U64:
    if any(key_bytes.is_hashed(column.type) for column in columns):
        return sip_hash.hashes(key_bytes.for_bloom(columns))
    # Of other types official releases hash the null marks alone.
    row = pa.array([b"\x00" * len(columns)], pa.large_binary())
    return np.repeat(sip_hash.hashes(row), len(columns[0]))
