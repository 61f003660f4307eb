"""Models of RQ indices that are built in segments: the rotation that the segments share."""

from __future__ import annotations

import json

from lancelake.errors import InvalidRequestError
from lancelake.index.vector.rotated_codes import ROTATED_BITS, new_settings

_DTYPES = ("float16", "float32", "float64")


def build_rq_model(dimension: int, num_bits: int = 5, dtype: str = "float32") -> str:
    """Return the model of RQ codes, for `rabitq_model` of `create_index_uncommitted`."""
    if dimension <= 0 or dimension % 8:
        raise InvalidRequestError("vector dimension must be divisible by 8 for IVF_RQ")
    if num_bits not in ROTATED_BITS:
        raise InvalidRequestError(f"num_bits of IVF_RQ must be 1 to 9, not {num_bits}")
    if dtype not in _DTYPES:
        raise InvalidRequestError(f"vectors of {dtype} have no RQ codes")
    return json.dumps(new_settings(dimension, num_bits))
