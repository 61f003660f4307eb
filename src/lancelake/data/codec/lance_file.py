"""Column reader of Lance data files (2.0 and later) on the official codec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import pyarrow as pa

from lancelake.caches import CacheKind, RecentlyUsed
from lancelake.data.codec import file_layout
from lancelake.data.codec.file_layout import (
    ColumnKind,
    Container,
    FileLayout,
    PhysicalColumn,
    is_fixed_size_structs,
    page_layout,
)
from lancelake.data.codec.readers import CodecReader, explained, open_end, open_reader, row_width
from lancelake.data.codec.transplant import (
    Transplant,
    TransplantedColumns,
    plan_transplant,
    without_text,
)
from lancelake.data.codec.workarounds import (
    PlainPages,
    PlainVectors,
    SeamedColumns,
    layout_with_gaps,
    page_seams,
    plain_pages,
)
from lancelake.data.column_reader import ColumnReader, FileShape, RowOffsets, prune, shaped
from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import DataFile, FileVersion
from lancelake.format.frozen import parse
from lancelake.format.ids import FieldId
from lancelake.format.logical_types import described
from lancelake.format.schema import Field, quoted_path
from lancelake.proto import file2_pb2, file_pb2
from lancelake.storage.table_files import FileAt

_LARGE_OFFSET_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGroup:
    """Columns to read with one reader.

    Its batches have the parents of `columns` under the file's names, in the order of `columns`.
    Without a transplant the codec reads `projection` of the file itself; with one, all columns
    of the transplanted file.
    """

    columns: tuple[PhysicalColumn, ...]
    projection: tuple[str, ...]
    transplant: Transplant | None


def read_groups(
    layout: FileLayout,
    container: Container,
    wanted: Sequence[int],
    *,
    blob_values: bool = False,
    raw_text: bool = False,
) -> tuple[ReadGroup, ...]:
    """Split columns, given by index, into groups that the codec reads correctly.

    A column of a map or of a fixed-size list of structs includes all columns of that node.
    Blob v1 columns are read as positions and sizes; with `blob_values` as values, unless they
    follow a blob v2 column. With `raw_text`, strings are read as binaries.
    """
    planner = _Planner(layout, container, blob_values=blob_values, raw_text=raw_text)
    groups: list[list[_Unit]] = []
    shared: dict[bool, list[_Unit]] = {}
    for unit in _units(layout, wanted):
        must_move = planner.must_move(unit)
        if _is_alone(unit, layout):
            groups.append([unit])
        elif must_move in shared:
            shared[must_move].append(unit)
        else:
            shared[must_move] = [unit]
            groups.append(shared[must_move])
    return tuple(planner.group(units) for units in groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """A node that the codec reads only as a whole, and its columns."""

    nodes: tuple[Field, ...]
    columns: tuple[PhysicalColumn, ...]

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)


def _units(layout: FileLayout, wanted: Sequence[int]) -> Iterator[_Unit]:
    done: set[int] = set()
    for index in wanted:
        column = layout.find(index)
        if column is None or index in done or column.kind is ColumnKind.PARENT:
            continue
        _ensure_readable(column, layout)
        nodes = _whole(column.nodes)
        columns: tuple[PhysicalColumn, ...] = (column,)
        if len(nodes) < len(column.nodes):
            columns = tuple(c for c in layout.columns if _is_value_below(c, nodes))
        done.update(c.index for c in columns)
        yield _Unit(nodes=nodes, columns=columns)


def _ensure_readable(column: PhysicalColumn, layout: FileLayout) -> None:
    """Raise for types that abort the process in the codec; no release reads them."""
    if not column.is_below_list or not layout.version.leaves_only:
        return
    if column.kind in (ColumnKind.BLOB_V1, ColumnKind.EMPTY_STRUCT):
        path = quoted_path(column.path)
        raise UnsupportedError(
            f"Column {path} of a data file of version {layout.version.value} has a "
            f"{column.kind.value} inside of a list",
            column=path,
            file_version=layout.version.value,
        )


def _is_value_below(column: PhysicalColumn, nodes: tuple[Field, ...]) -> bool:
    if column.kind is ColumnKind.PARENT or len(column.nodes) < len(nodes):
        return False
    return column.nodes[len(nodes) - 1] is nodes[-1]


def _whole(nodes: tuple[Field, ...]) -> tuple[Field, ...]:
    """Cut a path at the first node that the codec reads as a whole or not at all."""
    for depth, node in enumerate(nodes, 1):
        if node.logical_type == "map" or is_fixed_size_structs(node):
            return nodes[:depth]
    return nodes


def _is_alone(unit: _Unit, layout: FileLayout) -> bool:
    """Whether the codec misreads other columns together with these."""
    if is_fixed_size_structs(unit.nodes[-1]):
        return True
    is_empty = any(c.kind is ColumnKind.EMPTY_STRUCT for c in unit.columns)
    return is_empty and layout.version.leaves_only


class _Planner:
    """Planner for the columns of one file."""

    def __init__(
        self, layout: FileLayout, container: Container, *, blob_values: bool, raw_text: bool
    ) -> None:
        self._layout = layout
        self._container = container
        self._blob_values = blob_values
        self._raw_text = raw_text
        self._first_blob = layout.first_blob_v2
        self._nodes_at = _nodes_by_path(layout)
        self._short_json: set[int] = set()

    def must_move(self, unit: _Unit) -> bool:
        """Whether the codec misreads these columns in the file itself."""
        short_json = {c.index for c in unit.columns if self._has_short_offsets(c)}
        self._short_json |= short_json
        is_behind_blob = self._first_blob is not None and any(
            c.index >= self._first_blob for c in unit.columns
        )
        is_unreachable = "" in unit.path or len(self._nodes_at[unit.path]) > 1
        has_blob = any(c.kind is ColumnKind.BLOB_V1 for c in unit.columns)
        has_text = any(without_text(c.field) != c.field for c in unit.columns)
        return (
            self._layout.has_gaps
            or (self._raw_text and has_text)
            or bool(short_json)
            or is_behind_blob
            or is_unreachable
            or (has_blob and not self._blob_values)
        )

    def group(self, units: list[_Unit]) -> ReadGroup:
        """Return the group of these columns."""
        columns = tuple(column for unit in units for column in unit.columns)
        if self.must_move(units[0]):
            plan = plan_transplant(
                self._layout, columns, short_json=self._short_json, raw_text=self._raw_text
            )
            return ReadGroup(columns=columns, projection=(), transplant=plan)
        projection = tuple(quoted_path(unit.path) for unit in units)
        return ReadGroup(columns=columns, projection=projection, transplant=None)

    def _has_short_offsets(self, column: PhysicalColumn) -> bool:
        """Whether JSON was stored as a string, where the codec expects a large binary."""
        if column.kind is not ColumnKind.JSON_TEXT or not self._layout.version.leaves_only:
            return False
        pages = self._container.column(column.index).pages
        return _LARGE_OFFSET_BITS not in {bits for page in pages for bits in _offset_bits(page)}


def _nodes_by_path(layout: FileLayout) -> dict[tuple[str, ...], set[int]]:
    """Find the nodes of each path; more than one where fields share a name."""
    nodes: dict[tuple[str, ...], set[int]] = {}
    for column in layout.columns:
        path = column.path
        for depth, node in enumerate(column.nodes, 1):
            nodes.setdefault(path[:depth], set()).add(id(node))
    return nodes


def _offset_bits(page: file2_pb2.ColumnMetadata.Page) -> Iterator[int]:
    layout = page_layout(page)
    for encoding in (
        layout.mini_block_layout.value_compression,
        layout.mini_block_layout.dictionary,
        layout.full_zip_layout.value_compression,
    ):
        inner = encoding.general.values if encoding.HasField("general") else encoding
        if inner.HasField("variable"):
            yield inner.variable.offsets.flat.bits_per_value


# Batches the codec prefetches: enough to keep it busy, few enough to stay in the CPU cache.
_READAHEAD = 4
_CACHED = 256
_FILES = 1 << 14

_FileKey = tuple[int, int, tuple[FieldId, ...], tuple[int, ...]]

_ENTRY_BYTES = 512

LAYOUTS: CacheKind[tuple[bytes, FileVersion], FileLayout] = CacheKind(
    name="layouts",
    most_bytes=64 << 20,
    weight=lambda layout: _ENTRY_BYTES * (1 + len(layout.columns)),
    most_values=_CACHED,
)
LAYOUT_OF_FILE: CacheKind[FileAt, FileLayout] = CacheKind(
    name="layouts_of_files",
    most_bytes=16 << 20,
    weight=lambda _: _ENTRY_BYTES,  # files of a schema share a layout
    most_values=_FILES,
)
SEAMS: CacheKind[tuple[FileAt, tuple[int, ...]], tuple[int, ...]] = CacheKind(
    name="page_seams",
    most_bytes=32 << 20,
    weight=lambda seams: _ENTRY_BYTES + 32 * len(seams),
    most_values=_FILES,
)
PAGES: CacheKind[tuple[FileAt, int], PlainPages | None] = CacheKind(
    name="vector_pages",
    most_bytes=32 << 20,
    weight=lambda pages: _ENTRY_BYTES + (0 if pages is None else pages.nbytes),
    most_values=_FILES,
)
# Computed from schemas alone, which all sessions share.
_projections: RecentlyUsed[int, WantedColumns] = RecentlyUsed(_CACHED)
_projections_of_layouts: RecentlyUsed[_FileKey, FoundColumns] = RecentlyUsed(_CACHED)


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
        if not len(offsets):
            arrays = [pa.array([], field.type) for field in self.schema]
            return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        with explained(self._place.path):
            stream = self._reader.take_rows(offsets.tolist(), readahead=_READAHEAD)
            rows = list(stream)
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
    layout = place.root.session.caches[LAYOUT_OF_FILE].peek(place)
    reader = None if layout is not None else _guessed(place, wanted.names)
    if layout is None:
        layout = load_layout(place, file)
    here = FoundColumns.of(place, file, layout, wanted)
    if raw_text or not layout.is_plain:
        return _open_groups(place, layout, wanted, here.columns, raw_text=raw_text)
    if reader is None or here.names != wanted.names:
        reader = open_reader(place, here.names or None)
    plain = LanceFile(wanted.schema, place, reader, here.shapes, here.may_be_same)
    if place.root.scheme == "file" and row_width(_only_type(wanted.schema)) is not None:
        (column,) = here.columns.values()
        return (_plain_vectors(plain, place, reader, column.index),)
    return (_seamed(plain, place, here.with_seams),)


def _only_type(schema: pa.Schema) -> pa.DataType:
    return schema.field(0).type if len(schema) == 1 else pa.null()


def _plain_vectors(
    decoded: LanceFile, place: FileAt, codec: CodecReader, index: int
) -> PlainVectors:
    dtype = decoded.schema.field(0).type

    def pages() -> PlainPages | None:
        cache = place.root.session.caches[PAGES]
        return cache.get((place, index), lambda: plain_pages(open_end(place), index, dtype))

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
    container = open_end(place)
    indices = [column.index for column in columns.values()]
    readers: list[tuple[bool, ColumnReader]] = []
    for group in read_groups(layout, container, indices, raw_text=raw_text):
        indices_here = {column.index for column in group.columns}
        ids = {i for i, column in columns.items() if column.index in indices_here}
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
    cache = place.root.session.caches[SEAMS]
    seams = cache.get((place, indices), lambda: page_seams(open_end(place), indices))
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
        columns = _projections.get(id(fields), lambda: WantedColumns._make(fields))
        # Another tuple may have got the id of one that was freed.
        return columns if columns.fields is fields else WantedColumns._make(fields)

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
        return _projections_of_layouts.get(
            key, lambda: FoundColumns._make(place, file, layout, wanted)
        )

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


def load_layout(place: FileAt, file: DataFile) -> FileLayout:
    """Return the columns of a file, cached; files with the same schema share them."""
    cache = place.root.session.caches[LAYOUT_OF_FILE]
    return cache.get(place, lambda: _load_layout(place, file))


def _load_layout(place: FileAt, file: DataFile) -> FileLayout:
    end = open_end(place)
    message = file_pb2.FileDescriptor()
    parse(message, end.descriptor_bytes(), what=f"schema of data file {place.path}")
    message.ClearField("length")
    key = (message.SerializeToString(deterministic=True), file.version)
    cache = place.root.session.caches[LAYOUTS]
    layout = cache.get(key, lambda: file_layout.decode(message, file.version))
    if end.num_columns == len(layout.columns):
        return layout
    return layout_with_gaps(end, layout, file.column_indices)


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
