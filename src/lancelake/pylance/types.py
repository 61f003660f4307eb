"""Types of data that can be passed as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

import pyarrow as pa
import pyarrow.dataset as pads

__all__ = ["ArrowStream", "ReaderLike"]


class ArrowStream(Protocol):
    """An object that exports its rows as an Arrow stream, such as a Polars data frame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows."""
        ...


ReaderLike: TypeAlias = (
    pa.Table
    | pa.RecordBatch
    | pa.RecordBatchReader
    | pads.Dataset
    | pads.Scanner
    | Iterable[pa.RecordBatch]
    | Mapping[str, Sequence[object]]
    | Sequence[Mapping[str, object]]
    | ArrowStream
)
