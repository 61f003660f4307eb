"""Rows of a vector index with their codes, by partition."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.index.kind import ROW_ID, VALUE, BuildInput
from lancelake.index.row_sets import U64Array
from lancelake.index.vector.build import PartitionCodes, TrainedModel
from lancelake.index.vector.codes import CodeMatrix, ProductCodes

_MEMORY_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """Rows in the order of their partitions: those of partition i end before `ends[i]`."""

    ids: U64Array
    codes: npt.NDArray[Any]
    ends: npt.NDArray[np.int64]

    def partition(self, number: int) -> tuple[U64Array, CodeMatrix]:
        start = 0 if number == 0 else int(self.ends[number - 1])
        stop = int(self.ends[number])
        return np.asarray(self.ids[start:stop]), np.asarray(self.codes[start:stop])


@dataclass(slots=True)
class GroupedRows:
    """Rows added in any order, and returned partition by partition."""

    count: int
    folder: Path
    _held: list[tuple[npt.NDArray[np.int64], U64Array, CodeMatrix]] = field(default_factory=list)
    _held_bytes: int = 0
    _runs: list[_Run] = field(default_factory=list)

    def add(self, numbers: npt.NDArray[np.int64], ids: U64Array, codes: CodeMatrix) -> None:
        """Add rows of these partitions."""
        if not len(ids):
            return
        self._held.append((numbers, ids, codes))
        self._held_bytes += codes.nbytes + ids.nbytes + numbers.nbytes
        if self._held_bytes > _MEMORY_BYTES:
            self._runs.append(self._spill(self._sort()))

    def finish(self) -> None:
        """Sort the rows that are still in memory."""
        if self._held:
            self._runs.append(self._sort())

    def partition(self, number: int) -> tuple[U64Array, CodeMatrix] | None:
        """Return the rows of a partition in the order in which they were added; None if none."""
        parts = [run.partition(number) for run in self._runs]
        parts = [part for part in parts if len(part[0])]
        if not parts:
            return None
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _sort(self) -> _Run:
        numbers = np.concatenate([part[0] for part in self._held])
        ids = np.concatenate([part[1] for part in self._held])
        codes = np.concatenate([part[2] for part in self._held])
        self._held, self._held_bytes = [], 0
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=self.count))
        return _Run(ids[order], codes[order], ends)

    def _spill(self, run: _Run) -> _Run:
        """Move rows to a file that is mapped into memory."""
        paths = [self.folder / f"{len(self._runs)}-{name}.npy" for name in ("ids", "codes")]
        for path, values in zip(paths, (run.ids, run.codes), strict=True):
            np.save(path, values, allow_pickle=False)
        ids, codes = (np.load(path, mmap_mode="r", allow_pickle=False) for path in paths)
        return _Run(ids, codes, run.ends)


@contextmanager
def grouped_rows(partitions: int) -> Iterator[GroupedRows]:
    """Return an empty collection of rows, whose files are removed in the end."""
    with tempfile.TemporaryDirectory(prefix="lancelake-index-") as folder:
        yield GroupedRows(partitions, Path(folder))


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
    rows: BuildInput, model: TrainedModel, partitions: RowPartitions | None = None
) -> Iterator[pa.RecordBatch]:
    """Encode rows; of those with known partitions, rows that have none are left out."""
    schema = coded_schema(product_codes(model))
    for batch in rows.batches:
        vectors = model.indexed(batch.column(VALUE))
        ids, matrix = batch.column(ROW_ID).to_numpy()[vectors.rows], vectors.matrix
        if not len(ids):
            continue
        if partitions is None:
            numbers = model.assigned(matrix)
        else:
            numbers = partitions.find(ids)
            is_assigned = numbers >= 0
            ids, matrix, numbers = ids[is_assigned], matrix[is_assigned], numbers[is_assigned]
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
