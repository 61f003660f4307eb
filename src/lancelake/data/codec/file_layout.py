"""Column layout of a data file (2.0 and later)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter

from lancelake.errors import CorruptTableError
from lancelake.format.extension_names import EXTENSION_NAME
from lancelake.format.file_version import FileVersion
from lancelake.format.schema import BLOB_KEY, Field
from lancelake.format.schema_codec import decode as decode_schema
from lancelake.proto import file_pb2

_ARROW_JSON = b"arrow.json"
_LISTS = ("list", "large_list", "map")
_FIXED_SIZE_STRUCTS = "fixed_size_list:struct:"
_index_of = attrgetter("index")


class ColumnKind(Enum):
    """Content of a column."""

    VALUES = "values"
    """The values of a node without children."""

    PARENT = "parent"
    """Offsets of lists, or the length of structs; in 2.0 files only."""

    PACKED_STRUCT = "packed struct"
    """All fields of a struct, row by row."""

    EMPTY_STRUCT = "empty struct"
    """A struct without fields."""

    BLOB_V1 = "blob v1"
    """Positions and sizes of values that are stored elsewhere in the file."""

    BLOB_V2 = "blob v2"
    """Descriptors of values in this file, in files beside it or external."""

    JSON_TEXT = "json text"
    """JSON that pylance 4 stored as text, with the offsets of its Arrow type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalColumn:
    """A column of a data file, and its path of nodes in the file's schema."""

    index: int
    kind: ColumnKind
    nodes: tuple[Field, ...]
    top: int
    width: int = 1
    """Physical columns of the node: two where offsets and bytes of strings are separate."""

    @property
    def path(self) -> tuple[str, ...]:
        """Names from the root down, as in the file."""
        return tuple(node.name for node in self.nodes)

    @property
    def field(self) -> Field:
        """The node that owns the column."""
        return self.nodes[-1]

    @property
    def is_below_list(self) -> bool:
        """Whether a row may have several of these values."""
        return any(map(_is_list, self.nodes))

    @property
    def has_list_in_struct(self) -> bool:
        """Whether a list, at any depth, belongs to a struct."""
        lists = [depth for depth, node in enumerate(self.nodes) if _is_list(node)]
        above = self.nodes[: lists[-1]] if lists else ()
        return any(node.logical_type == "struct" for node in above)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLayout:
    """The columns of a data file, in the order of their indices."""

    version: FileVersion
    num_rows: int
    columns: tuple[PhysicalColumn, ...]
    is_plain: bool
    """Whether the codec reads any subset of these columns correctly."""

    has_gaps: bool = False
    """Whether column indices differ from those that the codec computes from the schema."""

    def find(self, index: int) -> PhysicalColumn | None:
        """Return the column with this index, if the file has it."""
        place = bisect_left(self.columns, index, key=_index_of) if self.has_gaps else index
        column = self.columns[place] if 0 <= place < len(self.columns) else None
        return column if column is not None and column.index == index else None

    @property
    def first_blob_v2(self) -> int | None:
        """Index of the first blob v2 column."""
        found = (c.index for c in self.columns if c.kind is ColumnKind.BLOB_V2)
        return next(found, None)


def decode(
    descriptor: file_pb2.FileDescriptor, version: FileVersion, *, num_columns: int | None = None
) -> FileLayout:
    """Number the columns; `num_columns`, if given, must be the result."""
    schema = decode_schema(_with_blob_members(descriptor.schema.fields), {})
    owners = (
        (top, nodes)
        for top, field in enumerate(schema.fields)
        for nodes in _owners((field,), version)
    )
    columns = tuple(
        PhysicalColumn(index=index, kind=kind_of(nodes[-1]), nodes=nodes, top=top)
        for index, (top, nodes) in enumerate(owners)
    )
    if num_columns is not None and num_columns != len(columns):
        raise CorruptTableError(
            f"A data file has {num_columns} columns, its schema {len(columns)}",
            expected=len(columns),
            found=num_columns,
        )
    return FileLayout(
        version=version,
        num_rows=descriptor.length,
        columns=columns,
        is_plain=_are_plain(columns),
    )


def _is_list(node: Field) -> bool:
    return node.logical_type.split(".")[0] in _LISTS


def kind_of(field: Field) -> ColumnKind:
    """Return the content of a node's column."""
    if field.logical_type == "struct":
        if BLOB_KEY in field.metadata:
            return ColumnKind.BLOB_V2
        if field.is_packed:
            return ColumnKind.PACKED_STRUCT
        return ColumnKind.PARENT if field.children else ColumnKind.EMPTY_STRUCT
    if field.is_blob_v1:
        return ColumnKind.BLOB_V1
    if field.is_json and field.metadata.get(EXTENSION_NAME) == _ARROW_JSON:
        return ColumnKind.JSON_TEXT
    return ColumnKind.PARENT if field.children else ColumnKind.VALUES


def is_fixed_size_structs(field: Field) -> bool:
    """Whether a node is a fixed-size list of structs."""
    return field.logical_type.startswith(_FIXED_SIZE_STRUCTS)


def _are_plain(columns: tuple[PhysicalColumn, ...]) -> bool:
    plain = (ColumnKind.VALUES, ColumnKind.PARENT, ColumnKind.PACKED_STRUCT)
    if any(column.kind not in plain for column in columns):
        return False
    nodes = {id(node): node for column in columns for node in column.nodes}.values()
    if any(not n.name or n.logical_type == "map" or is_fixed_size_structs(n) for n in nodes):
        return False
    return len({column.path for column in columns}) == len(columns)


def _owners(nodes: tuple[Field, ...], version: FileVersion) -> Iterator[tuple[Field, ...]]:
    """Yield the trail to each node that owns a column, parents first."""
    if kind_of(nodes[-1]) is not ColumnKind.PARENT:
        yield nodes
        return
    if not version.leaves_only:
        yield nodes
    for child in nodes[-1].children:
        yield from _owners((*nodes, child), version)


def _with_blob_members(fields: Iterable[file_pb2.Field]) -> Iterator[file_pb2.Field]:
    """Add the fields of blob descriptors, which have no ids, below their blob."""
    blob: file_pb2.Field | None = None
    for field in fields:
        if field.id >= 0:
            is_blob = field.logical_type == "struct" and BLOB_KEY in field.metadata
            blob = field if is_blob else None
            yield field
        elif blob is not None:
            member = file_pb2.Field()
            member.CopyFrom(field)
            member.parent_id = blob.id
            yield member
        else:
            yield field
