"""The total order of floating-point numbers, as IEEE 754 defines it and official Lance uses it.

Negative NaN, negative infinity, negative numbers, -0.0, 0.0, positive numbers, infinity, NaN.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_INTEGERS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def total_order(values: pa.Array, *, has_one_zero: bool = False) -> pa.Array:
    """Return integers that are ordered as floating-point numbers are; nulls stay null.

    Numbers have the same integer if all their bits are equal, and with `has_one_zero` both zeros.
    """
    width = values.type.bit_width
    bits = values.view(_INTEGERS[width])
    raw = (pc.fill_null(bits, 0) if bits.null_count else bits).to_numpy()
    # All bits of a negative number but the sign are flipped.
    keys = raw ^ ((raw >> (width - 1)) & ((1 << (width - 1)) - 1))
    if has_one_zero:
        keys = np.where(keys == -1, np.zeros_like(keys), keys)
    mask = pc.is_null(values).to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(keys, _INTEGERS[width], mask=mask)
