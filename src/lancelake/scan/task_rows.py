"""What the tasks of a scan read: the columns they need, and the rows of their fragments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import or_
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import AbstractBitMap, BitMap

from lancelake.caches import RecentlyUsed
from lancelake.data.arrays.batches import struct_of, to_public
from lancelake.data.blobs import StoredBlob, locate, read_all
from lancelake.data.codec import official
from lancelake.data.codec.readers import temporary_folder
from lancelake.data.column_reader import RowOffsets, interned, project
from lancelake.data.fragment_reader import (
    META_NAMES,
    FragmentReader,
    MetaColumn,
    RowMeta,
    known_deletions,
)
from lancelake.data.joined_fragments import join
from lancelake.errors import UnsupportedError
from lancelake.expr.evaluate import Evaluator
from lancelake.expr.literals import at_path
from lancelake.format import layout
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import computed_once
from lancelake.format.logical_types import has_blobs
from lancelake.format.schema import Field, Schema, quote_segment
from lancelake.scan.plan import ScanSpec, ScanTask
from lancelake.scan.request import ColumnOutput, ExpressionOutput, MetaOutput, Output
from lancelake.storage.location import Location
from lancelake.storage.table_files import TableFiles

MetaValues = Callable[[MetaColumn], pa.Array]


@dataclass(frozen=True, slots=True)
class Finisher:
    """Builds output batches."""

    outputs: tuple[Output, ...]
    schema: pa.Schema
    _evaluators: dict[str, Evaluator]
    _are_columns: bool = False
    """Whether the outputs are whole columns under their own names."""

    @staticmethod
    def of(spec: ScanSpec) -> Finisher:
        """Prepare the outputs of a scan."""
        evaluators = {
            output.name: Evaluator(output.expression)
            for output in spec.outputs
            if isinstance(output, ExpressionOutput)
        }
        are_columns = all(
            isinstance(output, ColumnOutput) and output.path == (output.name,)
            for output in spec.outputs
        )
        return Finisher(spec.outputs, spec.output_schema, evaluators, are_columns)

    def __call__(self, batch: pa.RecordBatch, meta: MetaValues) -> pa.RecordBatch:
        """Return the outputs for the rows of a batch."""
        if self._are_columns and batch.schema.equals(self.schema, check_metadata=True):
            return batch
        if not self.outputs:
            return pa.RecordBatch.from_struct_array(
                pa.Array.from_buffers(pa.struct([]), batch.num_rows, [None])
            )
        columns = [
            self._column(output, field.type, batch, meta)
            for output, field in zip(self.outputs, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _column(
        self, output: Output, target: pa.DataType, batch: pa.RecordBatch, meta: MetaValues
    ) -> pa.Array:
        match output:
            case ColumnOutput():
                return to_public(output.shown, at_path(batch, output.path), target)
            case MetaOutput():
                return meta(output.meta)
            case ExpressionOutput():
                return self._evaluators[output.name](_with_meta(output, batch, meta))
            case _:
                assert_never(output)


def needed_paths(outputs: Sequence[Output]) -> tuple[tuple[str, ...], ...]:
    """Return the paths of all columns that the outputs need."""
    paths: dict[tuple[str, ...], None] = {}
    for output in outputs:
        if isinstance(output, ColumnOutput):
            paths[output.path] = None
        elif isinstance(output, ExpressionOutput):
            paths |= dict.fromkeys(p for p in output.expression.paths if p[0] not in META_NAMES)
    return tuple(paths)


def _with_meta(output: ExpressionOutput, batch: pa.RecordBatch, meta: MetaValues) -> pa.RecordBatch:
    named = {path[0] for path in output.expression.paths}
    for name in META_NAMES:
        if name in named and name not in batch.schema.names:
            batch = batch.append_column(name, meta(MetaColumn(name)))
    return batch


_CACHED = 256

_Paths = tuple[tuple[str, ...], ...]

# A schema is kept with its projections, so that no other gets its id.
_projections: RecentlyUsed[tuple[int, _Paths], tuple[Schema, Schema]] = RecentlyUsed(_CACHED)


class Density:
    """Selectivity of a filter so far."""

    def __init__(self) -> None:
        self._seen = 0
        self._kept = 0

    def add(self, seen: int, hits: int) -> None:
        """Add the counts of a chunk."""
        self._seen += seen
        self._kept += hits

    def is_high(self, width: float, cost: float) -> bool:
        """Whether rows of this width are cheaper to read all than to fetch at this cost each."""
        return self._kept * cost > self._seen * width


@dataclass(frozen=True)
class ScanColumns:
    """Columns that the tasks of a scan read, computed once."""

    spec: ScanSpec
    density: Density

    @staticmethod
    def of(spec: ScanSpec) -> ScanColumns:
        """Return the columns of a scan."""
        return ScanColumns(spec, Density())

    @computed_once
    def output(self) -> Schema:
        """Columns of the outputs."""
        return self._columns(self._outputs)

    @computed_once
    def filter(self) -> Schema:
        """Columns of the filter."""
        return self._columns(self._filters)

    @computed_once
    def late(self) -> Schema:
        """Columns of the outputs that the filter does not need."""
        return self._columns(tuple(p for p in self._outputs if p not in self._filters))

    @computed_once
    def both(self) -> Schema:
        """Columns of outputs and filter."""
        return self._columns(self._outputs + self._filters)

    @computed_once
    def _outputs(self) -> _Paths:
        return needed_paths(self.spec.outputs)

    @computed_once
    def _filters(self) -> _Paths:
        return () if self.spec.predicate is None else self.spec.predicate.paths

    def _columns(self, paths: _Paths) -> Schema:
        """Project the table's schema; what is cached for a projection is found by its identity."""
        key = id(self.spec.table_schema), paths
        return _projections.get(key, lambda: (self.spec.table_schema, self._project(paths)))[1]

    def _project(self, paths: _Paths) -> Schema:
        projected = project(self.spec.table_schema, paths)
        return interned(projected) if self.spec.remembers_small else projected


_BATCH_BYTES = 32 << 20

_Found = list[StoredBlob | None]


def with_blob_values(task: ScanTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, with blobs as bytes if requested."""
    if task.spec.valued_schema is None:
        return batches
    return _fill(task, batches)


def _fill(task: ScanTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    spec = task.spec
    stored = [
        output.stored_blobs(spec.table_schema) if isinstance(output, ColumnOutput) else None
        for output in spec.outputs
    ]
    for batch in batches:
        columns = list(zip(stored, batch.columns, strict=True))
        blobs_of = [_locate(task, field, array) if field else [] for field, array in columns]
        for start, stop in _spans(batch.num_rows, [blobs for part in blobs_of for blobs in part]):
            arrays = [
                _fill_values(field, array[start:stop], iter([blobs[start:stop] for blobs in part]))
                if field
                else array[start:stop]
                for (field, array), part in zip(columns, blobs_of, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=spec.valued_schema)


def _locate(task: ScanTask, stored: Field, array: pa.Array) -> list[_Found]:
    """Find the blobs of each blob column of a field."""
    if stored.is_blob_v1 or stored.is_blob_v2:
        return [locate(task.spec.files, task.fragment, stored, array)]
    members = zip(stored.children, _members(stored, array), strict=True)
    return [f for child, part in members if has_blobs(child) for f in _locate(task, child, part)]


def _fill_values(stored: Field, array: pa.Array, blobs: Iterator[_Found]) -> pa.Array:
    """Replace descriptors by bytes, one column after the other."""
    if stored.is_blob_v1 or stored.is_blob_v2:
        return pa.array(read_all(next(blobs)), pa.large_binary())
    if not has_blobs(stored):
        return array
    members = zip(stored.children, _members(stored, array), strict=True)
    children = [_fill_values(child, part, blobs) for child, part in members]
    fields = [array.type.field(i).with_type(child.type) for i, child in enumerate(children)]
    return struct_of(children, fields, array)


def _members(stored: Field, array: pa.Array) -> Sequence[pa.Array]:
    if stored.logical_type != "struct":
        where = quote_segment(stored.name)
        msg = f"column {where} has blobs inside a {stored.logical_type}, which cannot be read"
        raise UnsupportedError(msg, action="Read their descriptions.", column=where)
    return [array.field(i) for i in range(array.type.num_fields)]


def _spans(rows: int, columns: Sequence[_Found]) -> Iterator[tuple[int, int]]:
    """Split rows into spans within the byte limit of a batch."""
    start, total = 0, 0
    for row in range(rows):
        size = sum(blob.size for blobs in columns if (blob := blobs[row]) is not None)
        if row > start and total + size > _BATCH_BYTES:
            yield start, row
            start, total = row, 0
        total += size
    yield start, rows


@dataclass(frozen=True)
class SingleFragment:
    """The rows of one fragment."""

    spec: ScanSpec
    fragment: Fragment

    @computed_once
    def deleted(self) -> BitMap:
        """Deleted rows."""
        return known_deletions(self.spec.files, self.fragment)

    def reader(self, columns: Schema) -> FragmentReader:
        """Open the fragment."""
        spec = self.spec
        return FragmentReader(
            spec.files, spec.manifest_at, self.fragment, columns, remembers=spec.remembers_small
        )

    def meta(self, column: MetaColumn, offsets: RowOffsets, ranks: RowOffsets) -> pa.Array:
        """Return a metadata column; `ranks` numbers the rows in scan order of the version."""
        return self._meta.column(column, offsets, ranks)

    @computed_once
    def _meta(self) -> RowMeta:
        spec = self.spec
        rows = self.reader(Schema(fields=())).physical_rows
        return RowMeta(spec.files, self.fragment, rows, spec.has_stable_row_ids)


@dataclass(frozen=True)
class JoinedRows:
    """The rows of several fragments, one after the other, from a local file."""

    spec: ScanSpec
    parts: tuple[Fragment, ...]
    fragment: Fragment
    files: TableFiles

    @computed_once
    def starts(self) -> list[int]:
        """Number of the first row of each fragment, and the number of rows."""
        return list(accumulate((part.physical_rows or 0 for part in self.parts), initial=0))

    @computed_once
    def deleted(self) -> BitMap:
        """Deleted rows."""
        shifted = (
            known_deletions(self.spec.files, part).shift(start)
            for part, start in zip(self.parts, self.starts, strict=False)
            if part.deletion_file is not None
        )
        return reduce(or_, shifted, BitMap())

    def reader(self, columns: Schema) -> FragmentReader:
        """Open the local file."""
        return FragmentReader(self.files, self.spec.manifest_at, self.fragment, columns)

    def meta(self, column: MetaColumn, offsets: RowOffsets, ranks: RowOffsets) -> pa.Array:
        """Return a metadata column."""
        if column is MetaColumn.ROW_OFFSET:
            return pa.array(ranks)
        return pa.array(self._values(column)[offsets])

    def split(self, rows: BitMap) -> list[BitMap]:
        """Return the rows of each fragment by their offsets in it."""
        return [
            (rows & BitMap(range(start, stop))).shift(-start) if rows else BitMap()
            for start, stop in zip(self.starts, self.starts[1:], strict=False)
        ]

    def _values(self, column: MetaColumn) -> np.ndarray:
        spec = self.spec
        values = []
        for part in self.parts:
            rows = part.physical_rows or 0
            offsets = np.arange(rows, dtype=np.uint64)
            meta = RowMeta(spec.files, part, rows, spec.has_stable_row_ids)
            values.append(np.asarray(meta.column(column, offsets, offsets)))
        return np.concatenate(values)


RowSource = SingleFragment | JoinedRows
"""Physical rows, numbered from 0."""


@contextmanager
def join_rows(spec: ScanSpec, fragments: Sequence[Fragment]) -> Iterator[JoinedRows | None]:
    """Join fragments in a temporary file; None if that is not possible."""
    with temporary_folder("joined-", official.folder()) as folder:
        (folder / layout.DATA).mkdir()
        whole = join(spec.files, fragments, folder)
        if whole is None:
            yield None
            return
        files = TableFiles(root=Location.parse(folder))
        yield JoinedRows(spec, tuple(fragments), whole, files)


Mask = npt.NDArray[np.bool_]


def to_mask(truth: pa.BooleanArray) -> Mask:
    """Return true where a condition is true, false where it is null."""
    if not len(truth):
        return np.zeros(0, dtype=np.bool_)
    validity, values = truth.buffers()
    mask = _bits(values, truth.offset, len(truth))
    if truth.null_count:
        mask &= _bits(validity, truth.offset, len(truth))
    return mask


def _bits(buffer: pa.Buffer, offset: int, length: int) -> Mask:
    packed = np.frombuffer(buffer, dtype=np.uint8)
    bits = np.unpackbits(packed, count=offset + length, bitorder="little")
    mask: Mask = bits[offset:].view(np.bool_)
    return mask


@dataclass(frozen=True, slots=True)
class LiveRows:
    """The rows of a fragment that are not deleted."""

    deleted: BitMap
    live_before: int = 0

    def mask(self, start: int, stop: int) -> Mask | None:
        """Return true for the live rows of a range; None when all are live."""
        if not self.deleted or not self.deleted.range_cardinality(start, stop):
            return None
        mask = np.ones(stop - start, dtype=np.bool_)
        gone = np.frombuffer(
            (self.deleted & BitMap(range(start, stop))).to_array(), dtype=np.uint32
        )
        mask[gone.astype(np.int64) - start] = False
        return mask

    def count(self, start: int, stop: int) -> int:
        """Count the live rows of a range."""
        return stop - start - int(self.deleted.range_cardinality(start, stop))

    def stop_after(self, count: int, start: int, stop: int) -> int:
        """Return where a range ends that has this many live rows, or `stop` if none does."""
        end = min(start + count, stop)
        while end < stop and (missing := count - self.count(start, end)):
            end = min(end + missing, stop)
        return end

    def ranks(self, offsets: RowOffsets) -> RowOffsets:
        """Number live rows in scan order of the version."""
        if not self.deleted:
            return offsets + np.uint64(self.live_before)
        gone = np.frombuffer(self.deleted.to_array(), dtype=np.uint32)
        before = np.searchsorted(gone, offsets.astype(np.uint32), side="left").astype(np.uint64)
        ranks: RowOffsets = offsets - before + np.uint64(self.live_before)
        return ranks

    def offsets_of(self, ranks: RowOffsets) -> RowOffsets:
        """Return the offsets of the rows with these numbers among the live ones."""
        if not self.deleted:
            return ranks
        gone = np.frombuffer(self.deleted.to_array(), dtype=np.uint32).astype(np.int64)
        # The i-th deleted row has gone[i] - i live rows before it.
        shift = np.searchsorted(gone - np.arange(len(gone)), ranks.astype(np.int64), side="right")
        return ranks + shift.astype(np.uint64)


def mask_rows(batch: pa.RecordBatch, keep: Mask) -> pa.RecordBatch:
    """Return the rows to keep."""
    if 2 * np.count_nonzero(keep) > len(keep):
        return batch.filter(pa.array(keep))
    # Few rows are taken in half the time.
    return batch.take(pa.array(np.flatnonzero(keep)))


def at_places(batch: pa.RecordBatch, places: RowOffsets) -> pa.RecordBatch:
    """Return the rows at these places, ascending and unique."""
    if 2 * len(places) <= batch.num_rows:
        return batch.take(pa.array(places))
    return batch.filter(pa.array(mask_of(places, 0, batch.num_rows)))


def offsets_of(rows: AbstractBitMap) -> RowOffsets:
    """Return the numbers of a bitmap, ascending."""
    return np.frombuffer(rows.to_array(), dtype=np.uint32).astype(np.uint64)


def mask_of(offsets: RowOffsets, start: int, stop: int) -> Mask:
    """Return true for these of the rows of a range."""
    mask = np.zeros(stop - start, dtype=np.bool_)
    mask[offsets.astype(np.int64) - start] = True
    return mask


def kept_from(first: int, keep: Mask) -> RowOffsets:
    """Return the offsets of the rows to keep of a chunk that starts at an offset."""
    offsets: RowOffsets = np.flatnonzero(keep).astype(np.uint64) + np.uint64(first)
    return offsets
