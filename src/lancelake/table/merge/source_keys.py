"""Normalised keys of a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.format.schema import Field
from lancelake.table.merge.keys import Comparer, is_complete
from lancelake.table.merge.source import SourceRows

SOURCE_ROW = "source_row"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKeys:
    """A column for each part of the key, in the order of the source rows."""

    table: pa.Table
    are_unique: bool
    """Whether complete keys are known to be unique."""

    @staticmethod
    def of(source: SourceRows, fields: Sequence[Field], names: Sequence[str]) -> SourceKeys:
        """Read the keys of all source rows."""
        rows = source.columns(names)
        columns = [
            Comparer.of(field).whole(rows.column(name))
            for name, field in zip(names, fields, strict=True)
        ]
        table = pa.table(columns, names=[f"k{i}" for i in range(len(columns))])
        return SourceKeys(table=table, are_unique=len(columns) == 1 and _are_unique(columns[0]))

    def complete(self) -> pa.Table:
        """Return the keys without a null, with their row numbers."""
        numbers = pa.array(np.arange(self.table.num_rows))
        numbered = self.table.append_column(SOURCE_ROW, numbers)
        columns = self.table.columns
        if any(column.null_count for column in columns):
            numbered = numbered.filter(is_complete(columns))
        return numbered

    def parts(self, size: int) -> Iterator[pa.Table]:
        """Yield the keys without a null, with their row numbers, this many at a time."""
        numbered = self.complete()
        for start in range(0, numbered.num_rows, size):
            yield numbered.slice(start, size)


def _are_unique(column: pa.ChunkedArray) -> bool:
    if pa.types.is_integer(column.type) and not column.null_count:
        ordered = np.sort(column.to_numpy())
        return not bool((ordered[1:] == ordered[:-1]).any())
    different: int = pc.count_distinct(column).as_py()
    return different == len(column) - int(column.null_count)
