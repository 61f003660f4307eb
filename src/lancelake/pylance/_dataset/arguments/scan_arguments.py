"""Arguments of scans, checked and converted."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.column_reader import RowOffsets
from lancelake.errors import InvalidRequestError
from lancelake.format.frozen import FrozenMap

Columns: TypeAlias = list[str] | dict[str, str] | None
Filter: TypeAlias = str | pc.Expression | None

_BLOB_HANDLING = ("all_binary", "all_descriptions", "blobs_descriptions")


def asks_for_blob_values(blob_handling: str | None) -> bool:
    """Whether a `blob_handling`, which must be valid, returns bytes."""
    if blob_handling not in (None, *_BLOB_HANDLING):
        expected = ", ".join(_BLOB_HANDLING)
        problem = f"Invalid blob_handling: {blob_handling}. Expected one of: {expected}"
        raise InvalidRequestError(problem, blob_handling=blob_handling)
    return blob_handling == "all_binary"


def row_numbers(indices: Iterable[int] | pa.Array) -> RowOffsets:
    """Convert row numbers to an array; none may be negative."""
    values = indices.to_pylist() if isinstance(indices, pa.Array | pa.ChunkedArray) else indices
    numbers = [operator.index(i) for i in values]
    if min(numbers, default=0) < 0:
        raise OverflowError("can't convert negative int to unsigned")
    return np.array(numbers, dtype=np.uint64)


def request_columns(columns: object) -> tuple[str, ...] | FrozenMap[str, str] | None:
    """Convert columns as given by users to those of a request."""
    if columns is None:
        return None
    if isinstance(columns, Mapping):
        return FrozenMap(dict(columns))
    if not isinstance(columns, list):
        found = type(columns)
        raise TypeError(f"columns must be a list or dict[name, expression], got {found}")
    if not all(isinstance(name, str) for name in columns):
        raise TypeError("column names must be strings")
    return tuple(columns)
