"""Files of a BTREE: their names, columns and metadata."""

from __future__ import annotations

import pyarrow as pa

LOOKUP_FILE = "page_lookup.lance"
PAGE_FILE = "page_data.lance"

VALUES, IDS = "values", "ids"
MIN, MAX, NULL_COUNT, PAGE = "min", "max", "null_count", "page_idx"

PAGE_ROWS = "batch_size"
IS_RANGED = "range_partitioned"
PAGES_OF_PARTS = "page_num_per_range_partition"

DEFAULT_PAGE_ROWS = 4096
PAGE_ROWS_PARAMETER = "zone_size"


def part_file(part: int) -> str:
    """Name of the pages of a part."""
    return f"part_{part}_{PAGE_FILE}"


def part_lookup(part: int) -> str:
    """Name of the bounds of a part that was not merged yet."""
    return f"part_{part}_{LOOKUP_FILE}"


def part_number(place: int) -> int:
    """Return the number of the part with the range at this position."""
    return place << 32


def page_schema(dtype: pa.DataType) -> pa.Schema:
    """Columns of a file of pages."""
    return pa.schema([pa.field(VALUES, dtype), pa.field(IDS, pa.uint64(), nullable=False)])


def lookup_schema(dtype: pa.DataType) -> pa.Schema:
    """Columns of the table of bounds."""
    return pa.schema(
        [
            pa.field(MIN, dtype),
            pa.field(MAX, dtype),
            pa.field(NULL_COUNT, pa.uint32(), nullable=False),
            pa.field(PAGE, pa.uint32(), nullable=False),
        ]
    )
