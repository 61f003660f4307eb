"""Rows with their partition and code: what the steps of a PQ index build exchange."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.index.kind import ROW_ID, VALUE, BuildInput
from lancelake.index.row_ids import U64Array
from lancelake.index.vector.grouped_rows import GroupedRows
from lancelake.index.vector.product_codes import ProductCodes
from lancelake.index.vector.training import TrainedModel
from lancelake.index.vector.write import PartitionCodes

PARTITION = "__ivf_part_id"
GROUPS = "partitions"
"""Column of files in which each row is a partition: a list of coded rows."""


@dataclass(frozen=True, slots=True, eq=False)
class RowPartitions:
    """Partitions of rows that were assigned before, by the ids of the rows in their order."""

    ids: U64Array
    numbers: npt.NDArray[np.int64]

    @staticmethod
    def of(ids: npt.NDArray[Any], numbers: npt.NDArray[Any]) -> RowPartitions:
        """Return the partitions of rows in any order."""
        order = np.argsort(ids, kind="stable")
        return RowPartitions(ids[order].astype(np.uint64), numbers[order].astype(np.int64))

    def find(self, ids: U64Array) -> npt.NDArray[np.int64]:
        """Return the partition of each row, -1 for rows that have none."""
        if not len(self.ids):
            return np.full(len(ids), -1, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[places] == ids, self.numbers[places], -1)


def coded_schema(codes: ProductCodes) -> pa.Schema:
    """Return the columns of coded rows."""
    (code,) = codes.fields()
    ids, numbers = pa.field(ROW_ID, pa.uint64()), pa.field(PARTITION, pa.uint32())
    return pa.schema([ids, numbers, code.with_nullable(False)])


def coded_batches(
    rows: BuildInput, model: TrainedModel, known: RowPartitions | None = None
) -> Iterator[pa.RecordBatch]:
    """Encode rows; of those with known partitions, rows that have none are left out."""
    schema = coded_schema(product_codes(model))
    for batch in rows.batches:
        vectors = model.indexed(batch.column(VALUE))
        ids, matrix = batch.column(ROW_ID).to_numpy()[vectors.rows], vectors.matrix
        if not len(ids):
            continue
        if known is None:
            numbers = model.assigned(matrix)
        else:
            numbers = known.find(ids)
            found = numbers >= 0
            ids, matrix, numbers = ids[found], matrix[found], numbers[found]
        _ensure_numbers(numbers, len(model.partitions))
        yield coded_batch(schema, ids, numbers, model.encoded(matrix, numbers))


def coded_batch(
    schema: pa.Schema, ids: U64Array, numbers: npt.NDArray[Any], codes: npt.NDArray[np.uint8]
) -> pa.RecordBatch:
    """Return rows as a batch."""
    dtype = schema.field(2).type
    lists = pa.FixedSizeListArray.from_arrays(pa.array(codes.reshape(-1)), dtype.list_size)
    columns = [pa.array(ids, pa.uint64()), pa.array(numbers.astype(np.uint32)), lists.cast(dtype)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def group(batches: Iterable[pa.RecordBatch], groups: GroupedRows) -> None:
    """Group coded rows by their partitions."""
    for batch in batches:
        numbers = batch.column(PARTITION).to_numpy().astype(np.int64)
        _ensure_numbers(numbers, groups.count)
        groups.add(numbers, *_ids_and_codes(batch))
    groups.finish()


def grouped_schema(coded: pa.Schema) -> pa.Schema:
    """Return the column of partitions of coded rows."""
    return pa.schema([pa.field(GROUPS, pa.list_(pa.struct(list(coded))))])


def grouped_batch(coded: pa.Schema, number: int, part: PartitionCodes | None) -> pa.RecordBatch:
    """Return a partition as one row."""
    width = coded.field(2).type.list_size
    ids, codes = part or (np.zeros(0, np.uint64), np.zeros((0, width), np.uint8))
    rows = coded_batch(coded, ids, np.full(len(ids), number), codes)
    members = pa.StructArray.from_arrays(rows.columns, fields=list(coded))
    lists = pa.ListArray.from_arrays(pa.array([0, len(ids)], pa.int32()), members)
    schema = grouped_schema(coded)
    return pa.RecordBatch.from_arrays([lists.cast(schema.field(0).type)], schema=schema)


def grouped_rows_of(batch: pa.RecordBatch) -> PartitionCodes | None:
    """Return the rows of partitions; None if there are none."""
    members = batch.column(GROUPS).flatten()
    if not len(members):
        return None
    return _ids_and_codes(pa.RecordBatch.from_struct_array(members))


def product_codes(model: TrainedModel) -> ProductCodes:
    """Return the PQ codes of a model; other indices are not built in steps."""
    if not isinstance(model.codes, ProductCodes):
        raise InvalidRequestError(f"{model.type} is not built in steps; IVF_PQ is")
    return model.codes


def _ids_and_codes(batch: pa.RecordBatch) -> PartitionCodes:
    values = batch.column(ProductCodes.column)
    codes = values.flatten().to_numpy(zero_copy_only=False)
    return batch.column(ROW_ID).to_numpy(), codes.reshape(batch.num_rows, values.type.list_size)


def _ensure_numbers(numbers: npt.NDArray[Any], count: int) -> None:
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < count:
        problem = f"rows of partition {int(numbers.max())}, the model has {count} partitions"
        raise CorruptTableError(problem)
