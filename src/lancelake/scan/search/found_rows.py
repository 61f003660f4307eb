"""Columns of the rows that a task of a batch search finds."""

from __future__ import annotations

import pyarrow as pa

from lancelake.data.row_meta import MetaColumn
from lancelake.scan.nearest import DISTANCE, QUERY_INDEX

ADDRESS = MetaColumn.ROW_ADDRESS.value
SEGMENT = "segment"
"""Number of the segment of an index that has the row; `NO_SEGMENT` if its vector was read."""
STORED_ID = "stored_id"
"""Id of the row in the segment, by which rows of equal distances are ordered there."""
NO_SEGMENT = -1
FOUND = pa.schema(
    [
        (QUERY_INDEX, pa.int64()),
        (SEGMENT, pa.int32()),
        (STORED_ID, pa.int64()),
        (ADDRESS, pa.int64()),
        (DISTANCE, pa.float32()),
    ]
)
