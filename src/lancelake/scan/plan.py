"""Plan of a scan: frozen tasks, and the width of their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyroaring import AbstractBitMap, FrozenBitMap

from lancelake.caches import cached_by_identity
from lancelake.data.column_reader import columns_of
from lancelake.expr.predicate import Predicate
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.logical_types import described
from lancelake.format.schema import Field, Schema
from lancelake.scan.index_search.search import IndexSearch
from lancelake.scan.request import Ordering, Output
from lancelake.storage.table_files import FileAt, TableFiles

_UNKNOWN_VALUE_BYTES = 64.0
_LEAST_UNKNOWN_BYTES = 20.0
_SCHEMAS = 64

Widths = FrozenMap[FieldId, float | None]


@cached_by_identity(_SCHEMAS)
def column_widths(schema: Schema) -> Widths:
    """Return the bytes per row of each column, None where rows differ."""
    pairs = (pair for field in schema.fields for pair in _widths(field, repeated=False))
    return FrozenMap(dict(pairs))


def row_bytes(fragment: Fragment, widths: Widths, wanted: Schema) -> float:
    """Estimate the bytes per row of the wanted columns.

    Fixed-width columns are known; the rest of a file's size is spread over its other columns.
    """
    return sum(value_bytes(fragment, widths, wanted))


def value_bytes(fragment: Fragment, widths: Widths, wanted: Schema) -> list[float]:
    """Estimate the bytes per row of each of the wanted columns that the fragment stores."""
    columns = {i for field in wanted.fields for i in columns_of(field)}
    values: list[float] = []
    for file in fragment.files:
        in_file = [i for i in file.fields if i in widths]
        per_value = _bytes_per_value(fragment, file, widths, in_file)
        for i in columns.intersection(in_file):
            width = widths[i]
            values.append(per_value if width is None else width)
    return values


def stored_bytes(fragment: Fragment, widths: Widths, wanted: Schema) -> float:
    """Estimate the bytes per row that the wanted columns take in the fragment's files.

    If a file is smaller than its values, it is compressed: its size is divided in the ratio of the
    widths of its columns.
    """
    columns = {i for field in wanted.fields for i in columns_of(field)}
    total = 0.0
    for file in fragment.files:
        in_file = [i for i in file.fields if i in widths]
        # In a compressed file nothing may be left for columns of unknown width.
        unknown = max(_bytes_per_value(fragment, file, widths, in_file), _LEAST_UNKNOWN_BYTES)
        widths_of = {i: unknown if (width := widths[i]) is None else width for i in in_file}
        rows, size, whole = fragment.physical_rows, file.file_size_bytes, sum(widths_of.values())
        stored = min(1.0, size / rows / whole) if rows and size and whole else 1.0
        total += stored * sum(widths_of[i] for i in columns.intersection(in_file))
    return total


def _bytes_per_value(
    fragment: Fragment, file: DataFile, widths: Widths, in_file: Sequence[FieldId]
) -> float:
    """Spread what fixed-width columns leave of a file's size over its other columns."""
    fixed = sum(widths[i] or 0.0 for i in in_file)
    unknown = sum(1 for i in in_file if widths[i] is None)
    rows, size = fragment.physical_rows or 0, file.file_size_bytes or 0
    spare = size / rows - fixed if size and rows else _UNKNOWN_VALUE_BYTES * unknown
    return max(spare, 0.0) / unknown if unknown else 0.0


def _widths(field: Field, *, repeated: bool) -> Iterator[tuple[FieldId, float | None]]:
    if field.owns_column:
        yield field.id, None if repeated else _type_width(storage_field(described(field)).type)
        return
    below = repeated or field.logical_type != "struct"
    for child in field.children:
        yield from _widths(child, repeated=below)


def _type_width(dtype: pa.DataType) -> float | None:
    if pa.types.is_null(dtype):
        return 0.0
    if pa.types.is_struct(dtype):
        parts = [_type_width(dtype.field(i).type) for i in range(dtype.num_fields)]
        return None if None in parts else sum(p or 0.0 for p in parts)
    if pa.types.is_fixed_size_list(dtype):
        inner = _type_width(dtype.value_type)
        return None if inner is None else inner * dtype.list_size
    if pa.types.is_dictionary(dtype):
        return _type_width(dtype.index_type)
    try:
        return float(dtype.bit_width) / 8
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSpec:
    """Specification that all tasks of a scan share."""

    files: TableFiles
    manifest_at: FileAt
    version: int
    table_schema: Schema
    widths: Widths
    outputs: tuple[Output, ...]
    output_schema: pa.Schema
    predicate: Predicate | None
    late: bool | None
    batch_rows: int | None
    batch_readahead: int | None
    has_stable_row_ids: bool
    include_deleted_rows: bool
    remembers_small: bool = False
    valued_schema: pa.Schema | None = None
    """Schema of rows with blob values, if those are requested."""

    @property
    def row_schema(self) -> pa.Schema:
        """Schema of the rows that tasks yield."""
        return self.output_schema if self.valued_schema is None else self.valued_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """Some rows of one fragment."""

    spec: ScanSpec
    fragment: Fragment
    start: int = 0
    stop: int | None = None
    live_before: int = 0
    row_limit: int | None = None
    rows: FrozenBitMap | None = None
    """Offsets of the rows to read; None for all live rows."""
    recheck: bool = True
    """Whether the predicate has to be evaluated for `rows`; otherwise they are known to match."""

    @property
    def most_rows(self) -> int | None:
        """How many rows the task looks at, at most; None if that is not known."""
        if self.rows is not None:
            return len(self.rows)
        stop = self.fragment.physical_rows if self.stop is None else self.stop
        return None if stop is None else stop - self.start

    def matching(self, rows: AbstractBitMap) -> ScanTask:
        """Return the task for rows that are known to match."""
        return replace(self, rows=FrozenBitMap(rows), recheck=False)

    def within(self, rows: AbstractBitMap) -> ScanTask:
        """Return the task for those of its rows that are among these; its predicate still holds."""
        common = rows if self.rows is None else self.rows & rows
        return replace(self, rows=FrozenBitMap(common))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """Tasks in row order, and the steps after them: offset, limit and order."""

    spec: ScanSpec
    tasks: tuple[ScanTask, ...]
    skip: int = 0
    limit: int | None = None
    order_by: tuple[Ordering, ...] = ()
    schema: pa.Schema
    fragment_readahead: int
    strict_batch_size: bool = False
    index_search: IndexSearch | None = None
    """What indices said about the filter; None if none was asked."""
