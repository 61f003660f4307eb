"""Column reader interface: some columns of one data file, in batches or by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

RowOffsets = npt.NDArray[np.uint64]


class ColumnReader(Protocol):
    """Columns of one data file, under the names and types of the table's schema.

    JSON is read as binary JSON, blobs as descriptors.
    """

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        ...

    @property
    def num_rows(self) -> int:
        """Physical rows of the file."""
        ...

    def batches(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop in order, in batches of `batch_rows`, except for the last."""
        ...

    def take(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at these offsets, sorted and unique."""
        ...
