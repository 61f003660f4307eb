"""Column reader of Lance data files (2.0 and later) on the official codec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

import pyarrow as pa

from lancelake.data.byte_source import StoreSource
from lancelake.data.codec import file_layout
from lancelake.data.codec.column_gaps import layout_with_gaps
from lancelake.data.codec.container import Container, open_container
from lancelake.data.codec.file_layout import FileLayout, PhysicalColumn
from lancelake.data.codec.page_seams import SeamedColumns, page_seams
from lancelake.data.codec.plain_vectors import PlainPages, PlainVectors, plain_pages, row_width
from lancelake.data.codec.read_groups import read_groups
from lancelake.data.codec.readers import CodecReader, explained, open_reader
from lancelake.data.codec.transplanted import TransplantedColumns
from lancelake.data.column_reader import ColumnReader, RowOffsets
from lancelake.data.file_to_table import FileShape, shaped
from lancelake.data.projection import prune
from lancelake.data.recently_used import RecentlyUsed
from lancelake.errors import CorruptTableError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.blobs import described
from lancelake.format.column_path import quoted_path
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import DataFile
from lancelake.format.ids import FieldId
from lancelake.format.schema import Field
from lancelake.format.unknown import parse
from lancelake.proto import file_pb2
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt

# Batches the codec prefetches: enough to keep it busy, few enough to stay in the CPU cache.
_READAHEAD = 4
_CACHED = 256
_FILES = 1 << 14

_FileKey = tuple[int, int, tuple[FieldId, ...], tuple[int, ...]]

_layouts: RecentlyUsed[tuple[bytes, FileVersion], FileLayout] = RecentlyUsed(_CACHED)
_known: RecentlyUsed[FileAt, FileLayout] = RecentlyUsed(_FILES)
_seams: RecentlyUsed[tuple[FileAt, tuple[int, ...]], tuple[int, ...]] = RecentlyUsed(_FILES)
_pages: RecentlyUsed[tuple[FileAt, int], PlainPages | None] = RecentlyUsed(_FILES)
_wanted: RecentlyUsed[int, WantedColumns] = RecentlyUsed(_CACHED)
_found: RecentlyUsed[_FileKey, FoundColumns] = RecentlyUsed(_CACHED)


@dataclass(frozen=True, slots=True)
class LanceFile:
    """Some columns of one file; each field is a top-level column of the codec's batches."""

    schema: pa.Schema
    _place: FileAt
    _reader: CodecReader
    _shapes: tuple[FileShape, ...]
    _may_be_same: bool = False
    """Whether columns of the types of `schema` need no conversion."""

    @property
    def num_rows(self) -> int:
        """Physical rows of the file."""
        return self._reader.num_rows()

    def batches(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop in order, in batches of `batch_rows`, except for the last."""
        if start >= stop:
            return
        with explained(self._place.path):
            result = self._reader.read_range(
                start, stop - start, batch_rows=batch_rows, readahead=_READAHEAD
            )
            for batch in result:
                yield self._shaped(batch)

    def take(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at these offsets, sorted and unique."""
        count = len(offsets)
        if count == 0:
            arrays = [pa.array([], field.type) for field in self.schema]
            return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        with explained(self._place.path):
            stream = self._reader.take_rows(offsets.tolist(), readahead=_READAHEAD)
            rows = list(islice(stream, 1))
            # All rows are usually in the first batch, and asking for the end takes time.
            if not rows or rows[0].num_rows < count:
                rows += stream
            return self._shaped(rows[0] if len(rows) == 1 else pa.concat_batches(rows))

    def _shaped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._may_be_same and batch.schema.equals(self.schema, check_metadata=True):
            return batch
        return shaped(batch, self._shapes, self.schema, self._place.path)


def open_lance_columns(
    place: FileAt, file: DataFile, fields: tuple[Field, ...], *, raw_text: bool = False
) -> tuple[ColumnReader, ...]:
    """Open the columns of these fields, reduced to those in the file.

    With `raw_text`, strings are returned as stored, even if they are not UTF-8.
    """
    wanted = WantedColumns.of(fields)
    layout = _known.peek(place)
    reader = None if layout is not None else _guessed(place, wanted.names)
    if layout is None:
        layout = load_layout(place, file, reader)
    found = FoundColumns.of(place, file, layout, wanted)
    if raw_text or not layout.is_plain:
        return _open_groups(place, layout, wanted, found.columns, raw_text=raw_text)
    if reader is None or found.names != wanted.names:
        reader = open_reader(place, found.names or None)
    plain = LanceFile(wanted.schema, place, reader, found.shapes, found.may_be_same)
    if place.root.scheme == "file" and row_width(_only_type(wanted.schema)) is not None:
        (column,) = found.columns.values()
        return (_plain_vectors(plain, place, reader, column.index),)
    return (_seamed(plain, place, found.with_seams),)


def _only_type(schema: pa.Schema) -> pa.DataType:
    return schema.field(0).type if len(schema) == 1 else pa.null()


def _plain_vectors(
    decoded: LanceFile, place: FileAt, codec: CodecReader, index: int
) -> PlainVectors:
    dtype = decoded.schema.field(0).type

    def pages() -> PlainPages | None:
        return _pages.get((place, index), lambda: plain_pages(_container(place), index, dtype))

    return PlainVectors(decoded=decoded, codec=codec, place=place, pages=pages)


def _open_groups(
    place: FileAt,
    layout: FileLayout,
    wanted: WantedColumns,
    columns: dict[FieldId, PhysicalColumn],
    *,
    raw_text: bool,
) -> tuple[ColumnReader, ...]:
    """Open a file with columns that need a transplant."""
    container = _container(place)
    indices = [column.index for column in columns.values()]
    readers: list[tuple[bool, ColumnReader]] = []
    for group in read_groups(layout, container, indices, raw_text=raw_text):
        held = {column.index for column in group.columns}
        ids = {i for i, column in columns.items() if column.index in held}
        pruned = (prune(field, ids) for field in wanted.fields)
        part = WantedColumns.of(tuple(field for field in pruned if field is not None))
        here = {i: columns[i] for i in part.columns}
        shapes = part.shaped(here, layout.version, raw_text=raw_text)
        if group.transplant is None:
            codec = open_reader(place, group.projection)
            reader: ColumnReader = LanceFile(part.schema, place, codec, shapes)
        else:
            reader = TransplantedColumns(
                schema=part.schema, container=container, plan=group.transplant, shapes=shapes
            )
        seamed = _with_seams(layout, group.columns)
        readers.append((group.transplant is not None, _seamed(reader, place, seamed)))
    # Several groups may share a struct; its validity is taken from the first.
    return tuple(reader for _, reader in sorted(readers, key=itemgetter(0)))


def _seamed(reader: ColumnReader, place: FileAt, indices: tuple[int, ...]) -> ColumnReader:
    """Let a reader respect the seams of the pages of these columns."""
    if not indices:
        return reader
    seams = _seams.get((place, indices), lambda: page_seams(_container(place), indices))
    return SeamedColumns(columns=reader, seams=seams) if seams else reader


def _with_seams(layout: FileLayout, columns: Iterable[PhysicalColumn]) -> tuple[int, ...]:
    """Return the columns whose pages have seams, which only lists in structs have."""
    if not layout.version.leaves_only:
        return ()
    return tuple(column.index for column in columns if column.has_list_in_struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedColumns:
    """Projection of columns, computed once and used for all files."""

    fields: tuple[Field, ...]
    columns: tuple[FieldId, ...]
    names: tuple[str, ...]
    schema: pa.Schema
    shapes: tuple[FileShape, ...]

    @staticmethod
    def of(fields: tuple[Field, ...]) -> WantedColumns:
        """Return the columns of these fields, cached by tuple."""
        found = _wanted.get(id(fields), lambda: WantedColumns._make(fields))
        # Another tuple may have got the id of one that was freed.
        return found if found.fields is fields else WantedColumns._make(fields)

    @staticmethod
    def _make(fields: tuple[Field, ...]) -> WantedColumns:
        trails = [trail for field in fields for trail in _trails((field,))]
        paths = {t[-1].id: tuple(node.name for node in t) for t in trails}
        return WantedColumns(
            fields=fields,
            columns=tuple(paths),
            names=tuple(quoted_path(path) for path in paths.values()),
            schema=pa.schema([storage_field(described(field)) for field in fields]),
            shapes=tuple(_Shaper(paths).shape(field, 0) for field in fields),
        )

    def shaped(
        self,
        columns: dict[FieldId, PhysicalColumn],
        version: FileVersion,
        *,
        raw_text: bool = False,
    ) -> tuple[FileShape, ...]:
        """Return how each field is built from the columns of a file."""
        paths = {field_id: column.path for field_id, column in columns.items()}
        shaper = _Shaper(paths, version, raw_text)
        return tuple(shaper.shape(field, 0) for field in self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundColumns:
    """Columns of a projection in a file, computed once for all files of the same layout."""

    wanted: WantedColumns
    layout: FileLayout
    columns: dict[FieldId, PhysicalColumn]
    names: tuple[str, ...]
    shapes: tuple[FileShape, ...]
    with_seams: tuple[int, ...]
    may_be_same: bool
    """Whether columns of the types of the projection need no conversion."""

    @staticmethod
    def of(
        place: FileAt, file: DataFile, layout: FileLayout, wanted: WantedColumns
    ) -> FoundColumns:
        """Find the columns of a projection in a file."""
        # The result keeps both objects, so that no others get their ids.
        key = id(wanted), id(layout), file.fields, file.column_indices
        return _found.get(key, lambda: FoundColumns._make(place, file, layout, wanted))

    @staticmethod
    def _make(
        place: FileAt, file: DataFile, layout: FileLayout, wanted: WantedColumns
    ) -> FoundColumns:
        columns = {i: _column(place, file, layout, i) for i in wanted.columns}
        names = tuple(quoted_path(column.path) for column in columns.values())
        is_same = names == wanted.names or not layout.is_plain
        shapes = wanted.shapes if is_same else wanted.shaped(columns, layout.version)
        return FoundColumns(
            wanted=wanted,
            layout=layout,
            columns=columns,
            names=names,
            shapes=shapes,
            may_be_same=all(shape.keeps_its_type for shape in shapes),
            with_seams=_with_seams(layout, columns.values()),
        )


def load_layout(place: FileAt, file: DataFile, reader: CodecReader | None = None) -> FileLayout:
    """Return the columns of a file, cached; files with the same schema share them."""
    return _known.get(place, lambda: _load_layout(place, file, reader))


def _load_layout(place: FileAt, file: DataFile, reader: CodecReader | None) -> FileLayout:
    message = file_pb2.FileDescriptor()
    reader = reader or open_reader(place, None)
    data = reader.read_global_buffer(0)
    parse(message, data, what=f"schema of data file {place.path}")
    message.ClearField("length")
    key = (message.SerializeToString(deterministic=True), file.version)
    layout = _layouts.get(key, lambda: file_layout.decode(message, file.version))
    if reader.num_columns == len(layout.columns):
        return layout
    return layout_with_gaps(_container(place), layout, file.column_indices)


def _container(place: FileAt) -> Container:
    return open_container(StoreSource(open_store(place.root), place.path))


def _guessed(place: FileAt, columns: tuple[str, ...]) -> CodecReader | None:
    """Use the table's names, which most files have."""
    if not columns:
        return None
    try:
        return open_reader(place, columns)
    except CorruptTableError:
        return None


def _column(place: FileAt, file: DataFile, layout: FileLayout, field_id: FieldId) -> PhysicalColumn:
    position = file.fields.index(field_id)
    index = file.column_indices[position] if position < len(file.column_indices) else -1
    column = layout.find(index)
    if column is None:
        problem = f"data file {place.path} has no column {index} for field {field_id}"
        raise CorruptTableError(problem, path=place.path)
    return column


@dataclass(frozen=True, slots=True)
class _Shaper:
    """Builds fields from columns with these names in the file."""

    paths: dict[FieldId, tuple[str, ...]]
    version: FileVersion | None = None
    raw_text: bool = False

    def shape(self, field: Field, depth: int) -> FileShape:
        """Build a field from the columns `depth` levels below."""
        leaf = field
        while not leaf.owns_column:
            leaf = leaf.children[0]
        path = self.paths[leaf.id]
        if depth >= len(path):
            problem = f"the data of field {field.name!r} is not nested as in the table"
            raise CorruptTableError(problem, field=field.name)
        name = path[depth]
        target = storage_field(described(field)).type
        if field.owns_column:
            positions_in = self.version if field.is_blob_v1 else None
            return FileShape(
                file_name=name, target=target, positions_in=positions_in, raw_text=self.raw_text
            )
        children = tuple(self.shape(child, depth + 1) for child in field.children)
        return FileShape(file_name=name, target=target, children=children, raw_text=self.raw_text)


def _trails(nodes: tuple[Field, ...]) -> Iterator[tuple[Field, ...]]:
    if nodes[-1].owns_column:
        yield nodes
        return
    for child in nodes[-1].children:
        yield from _trails((*nodes, child))
