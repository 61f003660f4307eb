"""Legacy data files, version 0.1: columns and pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lancelake.data.codec.index_file import IndexFileReader
from lancelake.data.codec.readers import ensure_delivered
from lancelake.data.column_reader import ByteSource, RowOffsets, StoreSource
from lancelake.data.legacy import legacy_layout
from lancelake.data.legacy.legacy_layout import (
    Decoding,
    Int64s,
    Layout,
    LegacyReads,
    PageColumn,
    Spans,
    damage_in,
    load_schema,
    together,
)
from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import DataFile
from lancelake.format.ids import FieldId
from lancelake.format.logical_types import to_arrow
from lancelake.format.schema import Field
from lancelake.storage.table_files import FileAt


class LegacyIndexFile(IndexFileReader):
    """Reads a legacy index file.

    The format does not distinguish a null from zero or an empty value: columns are read as if
    they had no nulls.
    """

    def __init__(self, place: FileAt) -> None:
        self._place = place
        source = self._source()
        with damage_in(source):
            fields = tuple(replace(each, nullable=False) for each in load_schema(source).fields)
        nodes = [node for top in fields for node in top.walk()]
        if any(node.logical_type.startswith("dict:") for node in nodes):
            problem = f"index file {place.path} has a dictionary column in the legacy format"
            raise UnsupportedError(problem, path=place.path)
        ids = tuple(node.id for node in nodes)
        entry = DataFile(path=place.path, fields=ids, file_major_version=0, file_minor_version=2)
        self._file = LegacyFile.open(source, entry, fields, manifest=None)
        self._num_rows = self._file.num_rows
        self._schema = self._file.schema

    def batches(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        batch_rows: int = 1 << 16,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Stream consecutive rows."""
        stop = self.num_rows if stop is None else min(stop, self.num_rows)
        if stop <= start:
            return
        for batch in self._opened().batches(start=start, stop=stop, batch_rows=batch_rows):
            yield batch if columns is None else batch.select(list(columns))

    def take(self, rows: Sequence[int], *, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows at these offsets, sorted and unique."""
        batch = self._opened().take(np.array(rows, dtype=np.uint64))
        table = pa.Table.from_batches([batch])
        return table if columns is None else table.select(list(columns))

    def _source(self) -> StoreSource:
        return StoreSource(self._place.store, self._place.path)

    def _opened(self) -> LegacyFile:
        """Return the file for an operation, whose account has the store calls."""
        return replace(self._file, source=self._source())


_BYTE_BITS = 8
_POSITION_BYTES = 8
_INT32_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Runs:
    """Ascending rows of a page as runs without gaps."""

    starts: Int64s
    stops: Int64s

    @staticmethod
    def of(starts: Int64s, stops: Int64s) -> Runs:
        """Drop empty runs and join adjacent ones."""
        filled = stops > starts
        starts, stops = starts[filled], stops[filled]
        is_first, is_last = np.ones(starts.size, np.bool_), np.ones(starts.size, np.bool_)
        is_first[1:] = starts[1:] != stops[:-1]
        is_last[:-1] = is_first[1:]
        return Runs(starts[is_first], stops[is_last])

    @staticmethod
    def between(start: int, stop: int) -> Runs:
        """Take all rows from start to stop."""
        return Runs.of(np.array([start], np.int64), np.array([stop], np.int64))

    @property
    def count(self) -> int:
        """Number of rows."""
        return int((self.stops - self.starts).sum())

    def times(self, size: int) -> Runs:
        """Return the items of these rows, when each row has `size` of them."""
        return Runs(self.starts * size, self.stops * size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Values of one field in one row group."""

    field: str
    position: int
    length: int
    file_bytes: int

    def times(self, size: int) -> Page:
        """Return the page of the items, when each value has `size` of them."""
        return Page(
            field=self.field,
            position=self.position,
            length=self.length * size,
            file_bytes=self.file_bytes,
        )

    def ensure_holds(self, runs: Runs, *, rows: int, value_bits: int) -> None:
        """Raise unless the page is inside the file, and the runs inside the page."""
        end = self.position * _BYTE_BITS + self.length * value_bits
        if self.position < 0 or self.length < 0 or end > self.file_bytes * _BYTE_BITS:
            msg = f"a page of field {self.field!r} is outside of the file"
            raise CorruptTableError(msg, field=self.field, position=self.position)
        if runs.starts.size and (runs.starts[0] < 0 or runs.stops[-1] > rows):
            msg = f"a page of field {self.field!r} has {rows} values and not {runs.stops[-1]}"
            raise CorruptTableError(msg, field=self.field, position=self.position)


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyColumn:
    """A field to read: its Arrow type and the positions of its pages (structs have none)."""

    name: str
    type: pa.DataType
    nullable: bool
    pages: PageColumn | None
    children: tuple[LegacyColumn, ...] = ()
    dictionary: pa.Array | None = None


def decode(column: LegacyColumn, group: int, runs: Runs, *, file_bytes: int) -> Decoding[pa.Array]:
    """Read rows of one row group."""
    if column.pages is None:
        parts = [decode(child, group, runs, file_bytes=file_bytes) for child in column.children]
        members = yield from together(parts)
        return pa.Array.from_buffers(column.type, runs.count, [None], children=members)
    page = Page(
        field=column.name,
        position=int(column.pages.positions[group]),
        length=int(column.pages.lengths[group]),
        file_bytes=file_bytes,
    )
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        width = 4 if pa.types.is_list(column.type) else 8
        bounds = yield from _bounds(page, runs, rows=page.length - 1, width=width)
        inner = Runs.of(bounds.firsts, bounds.lasts)
        items = yield from decode(column.children[0], group, inner, file_bytes=file_bytes)
        buffers = [None, bounds.offsets(width)]
        return pa.Array.from_buffers(column.type, runs.count, buffers, children=[items])
    if column.dictionary is not None:
        indices = yield from decode_values(column.type.index_type, page, runs)
        return _dictionary_array(page, indices, column.dictionary)
    return (yield from decode_values(column.type, page, runs, nullable=column.nullable))


def decode_values(
    dtype: pa.DataType, page: Page, runs: Runs, *, nullable: bool = False
) -> Decoding[pa.Array]:
    """Read values that are stored in a single page."""
    if _is_binary(dtype):
        return (yield from _binary(dtype, page, runs, nullable=nullable))
    page.ensure_holds(runs, rows=page.length, value_bits=_value_bits(dtype))
    if pa.types.is_null(dtype):
        return pa.nulls(runs.count)
    if pa.types.is_boolean(dtype):
        return (yield from _booleans(page, runs))
    if pa.types.is_fixed_size_list(dtype):
        size = dtype.list_size
        items = yield from decode_values(dtype.value_type, page.times(size), runs.times(size))
        return pa.Array.from_buffers(dtype, runs.count, [None], children=[items])
    width = _value_bits(dtype) // _BYTE_BITS
    spans = Spans(page.position + runs.starts * width, (runs.stops - runs.starts) * width)
    (data,) = yield [spans]
    return pa.Array.from_buffers(dtype, runs.count, [None, pa.py_buffer(data)])


def _value_bits(dtype: pa.DataType) -> int:
    if pa.types.is_null(dtype):
        return 0
    if pa.types.is_fixed_size_list(dtype):
        bits = dtype.list_size * _value_bits(dtype.value_type)
    else:
        bits = 0 if pa.types.is_nested(dtype) or _is_binary(dtype) else dtype.bit_width
    if bits == 0:
        msg = f"legacy data files do not support type {dtype}"
        raise UnsupportedError(msg, found=str(dtype))
    return int(bits)


def _is_binary(dtype: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(dtype)
        or pa.types.is_binary(dtype)
        or pa.types.is_large_string(dtype)
        or pa.types.is_large_binary(dtype)
    )


def _booleans(page: Page, runs: Runs) -> Decoding[pa.Array]:
    first_bytes = runs.starts // _BYTE_BITS
    byte_counts = -(-runs.stops // _BYTE_BITS) - first_bytes
    (data,) = yield [Spans(page.position + first_bytes, byte_counts)]
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    counts = runs.stops - runs.starts
    # Each run starts at a new byte of `data`.
    bit_starts = (np.cumsum(byte_counts) - byte_counts) * _BYTE_BITS + runs.starts % _BYTE_BITS
    shifts = np.repeat(bit_starts - (np.cumsum(counts) - counts), counts)
    return pa.array(bits[np.arange(shifts.size) + shifts].astype(np.bool_))


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Positions of variable-size values: of each run, and the size of each value."""

    firsts: Int64s
    lasts: Int64s
    sizes: Int64s

    def offsets(self, width: int) -> pa.Buffer:
        """Return the Arrow offsets of the concatenated values."""
        offsets = np.concatenate(([0], np.cumsum(self.sizes)))
        return pa.py_buffer(offsets.astype(np.int32 if width == 4 else np.int64))  # noqa: PLR2004


def _bounds(page: Page, runs: Runs, *, rows: int, width: int) -> Decoding[_Bounds]:
    page.ensure_holds(runs, rows=rows, value_bits=width * _BYTE_BITS)
    counts = runs.stops - runs.starts
    (data,) = yield [Spans(page.position + runs.starts * width, (counts + 1) * width)]
    values = np.frombuffer(data, f"<i{width}").astype(np.int64)
    steps = np.diff(values)
    if (steps < 0).any():
        msg = f"offsets of field {page.field!r} do not ascend"
        raise CorruptTableError(msg, field=page.field, position=page.position)
    ends = np.cumsum(counts + 1)
    sizes = np.delete(steps, ends[:-1] - 1)
    return _Bounds(values[ends - counts - 1], values[ends - 1], sizes)


def _binary(dtype: pa.DataType, page: Page, runs: Runs, *, nullable: bool) -> Decoding[pa.Array]:
    bounds = yield from _bounds(page, runs, rows=page.length, width=_POSITION_BYTES)
    if bounds.firsts.size and (bounds.firsts[0] < 0 or bounds.lasts[-1] > page.file_bytes):
        msg = f"values of field {page.field!r} are outside of the file"
        raise CorruptTableError(msg, field=page.field, position=page.position)
    is_small = pa.types.is_string(dtype) or pa.types.is_binary(dtype)
    total = int(bounds.sizes.sum())
    if is_small and total > _INT32_MAX:
        msg = f"values of field {page.field!r} take {total} bytes, too many for one {dtype} array"
        raise UnsupportedError(msg, field=page.field, action="Read fewer rows at a time.")
    (data,) = yield [Spans(bounds.firsts, bounds.lasts - bounds.firsts)]
    filled = bounds.sizes > 0
    validity = None
    if nullable and not filled.all():
        # The format has no other representation of a null.
        validity = pa.py_buffer(np.packbits(filled, bitorder="little"))
    buffers = [validity, bounds.offsets(4 if is_small else 8), pa.py_buffer(data)]
    return _checked_text(page, pa.Array.from_buffers(dtype, runs.count, buffers))


def _checked_text(page: Page, array: pa.Array) -> pa.Array:
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            msg = f"field {page.field!r} has text that is not UTF-8"
            raise CorruptTableError(msg, field=page.field) from error
    return array


def _dictionary_array(page: Page, indices: pa.Array, dictionary: pa.Array) -> pa.Array:
    try:
        return pa.DictionaryArray.from_arrays(indices, dictionary)
    except pa.ArrowException as error:
        msg = f"field {page.field!r} has indices above its dictionary of {len(dictionary)} values"
        raise CorruptTableError(msg, field=page.field) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyFile:
    """Columns of one legacy file; a `ColumnReader`."""

    source: ByteSource
    layout: Layout
    root: LegacyColumn

    @staticmethod
    def open(
        source: ByteSource,
        file: DataFile,
        fields: tuple[Field, ...],
        *,
        manifest: ByteSource | None,
    ) -> LegacyFile:
        """Open a file for fields of the table's schema, which must be in the file.

        `manifest` is the schema's manifest, which has the values of dictionaries.
        """
        nodes = [node for top in fields for node in top.walk()]
        wanted = tuple(node.id for node in nodes if node.logical_type != "struct")
        root_type = pa.struct([storage_field(field) for field in fields])
        dictionaries = _dictionaries(nodes, manifest)
        with damage_in(source):
            loaded = legacy_layout.load(source, file, wanted)
            columns = tuple(_column(field, loaded, dictionaries) for field in fields)
            root = LegacyColumn(
                name="", type=root_type, nullable=False, pages=None, children=columns
            )
            for column in columns:
                _ensure_lengths(column, loaded.group_rows)
        return LegacyFile(source=source, layout=loaded, root=root)

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return pa.schema(list(self.root.type))

    @property
    def num_rows(self) -> int:
        """Row count of the file."""
        return self.layout.num_rows

    def batches(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop in order, in batches of `batch_rows`, except for the last."""
        if not 0 <= start <= stop <= self.num_rows or batch_rows < 1:
            msg = f"rows {start} to {stop} in batches of {batch_rows}: it has {self.num_rows} rows"
            raise InvalidRequestError(f"cannot read {msg}", path=self.source.name)
        for first in range(start, stop, batch_rows):
            yield self._read(Runs.between(first, min(first + batch_rows, stop)))

    def take(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at these offsets, sorted and unique."""
        rows = offsets.astype(np.int64)
        ascending = bool((np.diff(rows) > 0).all())
        if rows.size and not (ascending and rows[0] >= 0 and rows[-1] < self.num_rows):
            msg = f"row offsets must be sorted and below {self.num_rows}"
            raise InvalidRequestError(msg, path=self.source.name)
        return self._read(Runs.of(rows, rows + 1))

    def _read(self, runs: Runs) -> pa.RecordBatch:
        size_bytes = self.layout.size_bytes
        reads = LegacyReads(self.source, size_bytes=size_bytes, known=[self.layout.tail])
        with damage_in(self.source):
            arrays = reads.run(
                together(
                    [
                        decode(self.root, group, inside, file_bytes=size_bytes)
                        for group, inside in _by_group(self.layout.row_offsets, runs)
                    ]
                )
            )
        rows = pa.RecordBatch.from_struct_array(self._joined(arrays))
        ensure_delivered(rows.num_rows, int((runs.stops - runs.starts).sum()), self.source.name)
        return rows

    def _joined(self, arrays: list[pa.Array]) -> pa.Array:
        if not arrays:
            return pa.array([], self.root.type)
        try:
            return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        except pa.ArrowInvalid as error:
            msg = f"a batch of {self.source.name} is too large for its Arrow types"
            action = "Read fewer rows at a time."
            raise UnsupportedError(msg, path=self.source.name, action=action) from error


def _by_group(row_offsets: Int64s, runs: Runs) -> Iterator[tuple[int, Runs]]:
    """Split runs of the file's rows by row group."""
    first = np.searchsorted(runs.stops, row_offsets[:-1], side="right")
    last = np.searchsorted(runs.starts, row_offsets[1:], side="left")
    for group in np.flatnonzero(first < last).tolist():
        start, stop = row_offsets[group], row_offsets[group + 1]
        inside = slice(first[group], last[group])
        starts, stops = np.maximum(runs.starts[inside], start), np.minimum(runs.stops[inside], stop)
        yield group, Runs.of(starts - start, stops - start)


def _column(field: Field, layout: Layout, dictionaries: Mapping[FieldId, pa.Array]) -> LegacyColumn:
    return LegacyColumn(
        name=field.name,
        type=storage_field(field).type,
        nullable=field.nullable,
        pages=layout.pages.get(field.id) if field.logical_type != "struct" else None,
        children=tuple(_column(child, layout, dictionaries) for child in field.children),
        dictionary=dictionaries.get(field.id),
    )


def _ensure_lengths(column: LegacyColumn, group_rows: Int64s, *, in_struct: bool = False) -> None:
    """Raise for pages that have other rows than their groups.

    Early releases wrote all rows of the fields of a struct that was sliced; every release reads
    the first rows.
    """
    if column.pages is None:
        for child in column.children:
            _ensure_lengths(child, group_rows, in_struct=True)
        return
    expected = group_rows + 1 if column.children else group_rows
    lengths = np.minimum(column.pages.lengths, expected) if in_struct else column.pages.lengths
    if (lengths != expected).any():
        msg = f"pages of field {column.name!r} do not match the row groups"
        raise CorruptTableError(msg, field=column.name)


def _dictionaries(nodes: list[Field], manifest: ByteSource | None) -> dict[FieldId, pa.Array]:
    fields = [node for node in nodes if node.logical_type.startswith("dict:")]
    if not fields:
        return {}
    if manifest is None:
        msg = f"values of dictionary column {fields[0].name!r} cannot be read without a manifest"
        raise InvalidRequestError(msg, field=fields[0].name)
    with damage_in(manifest):
        size_bytes = manifest.size_bytes()
        parts = [_dictionary(field, size_bytes) for field in fields]
        values = LegacyReads(manifest, size_bytes=size_bytes).run(together(parts))
    return {field.id: array for field, array in zip(fields, values, strict=True)}


def _dictionary(field: Field, file_bytes: int) -> Decoding[pa.Array]:
    if field.dictionary is None:
        msg = f"the schema has no dictionary position for {field.name!r}"
        raise CorruptTableError(msg, field=field.name)
    page = Page(
        field=field.name,
        position=field.dictionary.offset,
        length=field.dictionary.length,
        file_bytes=file_bytes,
    )
    runs = Runs.between(0, max(page.length, 0))
    dtype = to_arrow(field.logical_type).value_type
    return decode_values(dtype, page, runs, nullable=field.nullable)
