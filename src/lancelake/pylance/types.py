"""What may be given where rows are asked for?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

import pyarrow as pa
import pyarrow.dataset as pads

__all__ = ["ArrowStream", "ReaderLike"]


class ArrowStream(Protocol):
    """Anything that hands its rows over as an Arrow stream, such as a data frame of polars."""

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
