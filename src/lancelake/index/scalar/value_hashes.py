"""XXH64 hashes of column values for bloom filter indices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.expr.literals import is_binary, is_float, is_text
from lancelake.format import xxh64

_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def has_hash(dtype: pa.DataType) -> bool:
    """Whether values of a type have a hash that official releases agree on."""
    types = pa.types
    return bool(
        types.is_integer(dtype)
        or is_float(dtype)
        or is_text(dtype)
        or is_binary(dtype)
        or types.is_date(dtype)
        or types.is_time(dtype)
        or types.is_timestamp(dtype)
    )


def hashes_of(values: pa.Array) -> xxh64.U64:
    """Return the hashes of values, in order; nulls are skipped."""
    present = _stored(values.drop_null())
    if not len(present):
        return np.array([], dtype=np.uint64)
    if not pa.types.is_large_binary(present.type):
        return xxh64.hash_rows(_rows(present))
    offsets = np.frombuffer(present.buffers()[1], dtype=np.int64)
    offsets = offsets[present.offset : present.offset + len(present) + 1]
    data = np.frombuffer(present.buffers()[2] or b"", dtype=np.uint8)
    return xxh64.hash_slices(data, offsets)


def _stored(values: pa.Array) -> pa.Array:
    """Return values as the bytes or integers that store them; NaN may be stored in many ways."""
    if is_text(values.type) or is_binary(values.type):
        return values.cast(pa.large_binary())
    return values.view(_INTEGERS[values.type.bit_width])


def _rows(numbers: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the little-endian bytes of each number."""
    found = np.ascontiguousarray(np.asarray(numbers))
    little = found.astype(found.dtype.newbyteorder("<"), copy=False)
    return little.view(np.uint8).reshape(len(found), -1)
