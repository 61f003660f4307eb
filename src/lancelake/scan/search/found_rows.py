"""Columns of the rows that a task of a batch search finds."""

from __future__ import annotations

import pyarrow as pa

from lancelake.data.row_meta import MetaColumn
from lancelake.scan.nearest import DISTANCE, QUERY_INDEX

ADDRESS = MetaColumn.ROW_ADDRESS.value
FOUND = pa.schema([(QUERY_INDEX, pa.int64()), (ADDRESS, pa.int64()), (DISTANCE, pa.float32())])
