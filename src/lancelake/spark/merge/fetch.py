"""Fetch columns of rows by address on the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.spark.merge.rows_out import ADDRESS, rows_at, rows_at_once
from lancelake.spark.reading.spark_values import conform
from lancelake.spark.types import arrow_type, supported_schema
from lancelake.table.merge.target import TargetRows


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRows:
    """Adds a struct of table columns to rows with the address of a table row."""

    target: TargetRows
    struct: pa.StructType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches with the struct as their last column."""
        for batch in batches:
            step = rows_at_once(self.struct.num_fields)
            for start in range(0, batch.num_rows, step):
                yield self._with_target(batch.slice(start, step))

    def _with_target(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        found = rows_at(self.target, batch.column(ADDRESS).to_numpy().astype(np.uint64))
        struct = conform(found.to_struct_array(), self.struct)
        return batch.append_column(pa.field("fetched", self.struct), struct)


def with_columns(
    frame: DataFrame, base: Snapshot, columns: tuple[str, ...], name: str
) -> DataFrame:
    """Return a frame with a struct of the table's columns; rows should be ordered by address."""
    schema = supported_schema(base.manifest.schema)
    struct = t.StructType([schema[column] for column in columns])
    fetch = FetchRows(target=TargetRows.of(base, columns), struct=arrow_type(struct))
    fields = [*frame.schema.fields, t.StructField(name, struct)]
    return frame.mapInArrow(fetch, t.StructType(fields))


def by_fragment(frame: DataFrame) -> DataFrame:
    """Return rows ordered by address within partitions, each with its own range of addresses."""
    return frame.repartitionByRange(f.col(ADDRESS)).sortWithinPartitions(ADDRESS)
