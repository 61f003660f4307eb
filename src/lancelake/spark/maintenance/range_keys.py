"""Keys by which Spark sorts the values of an index as the index does, whatever their type."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import types as t

from lancelake.index.order import key_array, keys_of, values_of

_SIGN = np.uint64(1 << 63)


def key_type(dtype: pa.DataType) -> t.DataType | None:
    """Return the Spark type of the keys of values; None for values that Spark cannot sort."""
    keys = key_array([], dtype).type
    if pa.types.is_integer(keys):
        return t.LongType()
    if pa.types.is_decimal128(keys):
        return t.DecimalType(keys.precision, keys.scale)
    is_bytes = pa.types.is_binary(keys) or pa.types.is_large_binary(keys)
    return t.BinaryType() if is_bytes or pa.types.is_fixed_size_binary(keys) else None


def spark_keys(values: pa.Array) -> pa.Array:
    """Return the keys of values as Spark sorts them; null where a value is null."""
    keys = keys_of(values)
    if pa.types.is_uint64(keys.type):
        is_null = np.asarray(keys.is_null())
        numbers = keys.fill_null(0).to_numpy(zero_copy_only=False) ^ _SIGN
        return pa.array(numbers.view(np.int64), pa.int64(), mask=is_null)
    if pa.types.is_integer(keys.type):
        return keys.cast(pa.int64())
    return keys if pa.types.is_decimal128(keys.type) else keys.cast(pa.binary())


def values_of_keys(keys: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Return the values that have these keys of Spark's."""
    own = key_array([], dtype).type
    if pa.types.is_uint64(own):
        is_null = np.asarray(keys.is_null())
        numbers = keys.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64) ^ _SIGN
        return values_of(pa.array(numbers, own, mask=is_null), dtype)
    return values_of(keys.cast(own), dtype)
