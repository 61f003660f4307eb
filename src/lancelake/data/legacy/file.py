"""Column reader of legacy (0.1) data files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelake.data.byte_source import ByteSource
from lancelake.data.column_reader import RowOffsets
from lancelake.data.legacy import layout, pages
from lancelake.data.legacy.layout import Layout
from lancelake.data.legacy.pages import LegacyColumn, Page, Runs
from lancelake.data.legacy.reads import Decoding, Int64s, LegacyReads, damage_in, together
from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import DataFile
from lancelake.format.ids import FieldId
from lancelake.format.logical_types import to_arrow
from lancelake.format.schema import Field


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
            found = layout.load(source, file, wanted)
            columns = tuple(_column(field, found, dictionaries) for field in fields)
            root = LegacyColumn(
                name="", type=root_type, nullable=False, pages=None, children=columns
            )
            for column in columns:
                _ensure_lengths(column, found.group_rows)
        return LegacyFile(source=source, layout=found, root=root)

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
                        pages.decode(self.root, group, inside, file_bytes=size_bytes)
                        for group, inside in _by_group(self.layout.row_offsets, runs)
                    ]
                )
            )
        return pa.RecordBatch.from_struct_array(self._joined(arrays))

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
    return pages.decode_values(dtype, page, runs, nullable=field.nullable)
