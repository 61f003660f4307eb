"""Rows that procedures and maintenance jobs return, and their schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as t

ResultRow = Mapping[str, Any]
"""Values by the name of the column."""

WHOLE, TEXT, FLAG = t.LongType(), t.StringType(), t.BooleanType()


def row_schema(**columns: t.DataType) -> t.StructType:
    """Return the schema of nullable columns, by name."""
    return t.StructType([t.StructField(name, dtype) for name, dtype in columns.items()])
