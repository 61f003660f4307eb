"""The first rows of a result, and whether there are more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRows:
    """The first rows of a result, and whether there are more."""

    table: pa.Table
    has_more: bool


def first_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most: int | None) -> FirstRows:
    """Read the rows to show, and one more to know whether there are more."""
    kept: list[pa.RecordBatch] = []
    left = most
    for batch in batches:
        kept.append(batch if left is None else batch.slice(0, left))
        if left is not None:
            if batch.num_rows > left:
                return FirstRows(table=pa.Table.from_batches(kept, schema), has_more=True)
            left -= batch.num_rows
    return FirstRows(table=pa.Table.from_batches(kept, schema), has_more=False)
