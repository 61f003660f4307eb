"""Documents of a text index: the texts of a row, which are one string or a list of strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.expr.literals import is_text

_SEPARATOR = " "


def is_document(dtype: pa.DataType) -> bool:
    """Whether rows of a type are documents: strings, or lists of strings of any length."""
    is_list = pa.types.is_list(dtype) or pa.types.is_large_list(dtype)
    return is_text(dtype.value_type) if is_list else is_text(dtype)


def documents(values: pa.Array) -> pa.Array:
    """Return one text per row, which has no nulls: the strings of a list are joined by spaces.

    Official releases from 14 on index the same document; null elements are left out.
    """
    if is_text(values.type):
        return values
    elements = values.flatten()
    rows = np.asarray(pc.list_parent_indices(values), dtype=np.int64)
    is_valid = np.asarray(elements.is_valid())
    counts = np.bincount(rows[is_valid], minlength=len(values))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    # Arrow joins elements of this type only; one chunk of a text index is far below 2 GB.
    strings = elements.filter(pa.array(is_valid)).cast(pa.string())
    return pc.binary_join(pa.LargeListArray.from_arrays(offsets, strings), _SEPARATOR)
