"""Schemas under which the codec reads transplanted columns correctly."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from lancelake.data.codec.column_transplant import Graft, Transplant
from lancelake.data.codec.file_layout import ColumnKind, FileLayout, PhysicalColumn
from lancelake.format.frozen import EMPTY_MAP, FrozenMap
from lancelake.format.ids import NO_PARENT, FieldId
from lancelake.format.schema import Field, Schema
from lancelake.format.schema_codec import encode as encode_schema
from lancelake.proto import file_pb2

_PACKED: FrozenMap[str, bytes] = FrozenMap({"lance-encoding:packed": b"true"})
_POSITION_AND_SIZE = tuple(
    Field(name=name, id=FieldId(0), logical_type="uint64") for name in ("position", "size")
)
_BINARIES = {"string": "binary", "large_string": "large_binary"}
_DICTIONARY = "dict"
_BYTES = (Field(name="item", id=FieldId(0), logical_type="uint8"),)


def plan_transplant(
    layout: FileLayout,
    columns: Sequence[PhysicalColumn],
    *,
    short_json: Collection[int] = (),
    raw_text: bool = False,
) -> Transplant:
    """Plan a file of these columns, with the same parents as in their own.

    Blobs become packed structs: v2 with the fields of its descriptor, v1 with position and
    size. The JSON columns with an index in `short_json` become strings, and strings with a
    column of their own for the bytes become lists of bytes. With `raw_text`, strings become
    binaries, which the codec reads without a check that they are UTF-8.
    """
    roots: dict[int, _Branch] = {}
    for column in columns:
        level = roots
        for node in column.nodes:
            level = level.setdefault(id(node), _Branch(node)).children
    own = {id(column.field): column for column in layout.columns}
    # In 2.0 files the parents have columns as well.
    grafts = tuple(
        graft
        for branch in roots.values()
        for node in branch.walk()
        if id(node) in own
        for graft in _grafts(own[id(node)], layout)
    )
    readable = {
        id(c.field): _readable(c, is_short_json=c.index in short_json) for c in layout.columns
    }
    if raw_text:
        readable = {node: without_text(field) for node, field in readable.items()}
    fields = [branch.as_field(readable) for branch in roots.values()]
    schema = Schema(fields=tuple(_numbered(fields, NO_PARENT, count())))
    return Transplant(grafts=grafts, schema=file_pb2.Schema(fields=encode_schema(schema)))


def without_text(field: Field) -> Field:
    """Return a field with binaries in place of strings, at any depth."""
    kind, _, rest = field.logical_type.partition(":")
    if kind == _DICTIONARY:
        words, _, indices = rest.partition(":")
        logical_type = f"{kind}:{_BINARIES.get(words, words)}:{indices}"
    else:
        logical_type = _BINARIES.get(field.logical_type, field.logical_type)
    children = tuple(without_text(child) for child in field.children)
    if logical_type == field.logical_type and children == field.children:
        return field
    return replace(field, logical_type=logical_type, children=children)


@dataclass(slots=True)
class _Branch:
    """A node of a file's schema with its needed children."""

    node: Field
    children: dict[int, _Branch] = field(default_factory=dict)

    def walk(self) -> Iterator[Field]:
        """Yield the nodes, parents first."""
        yield self.node
        for child in self.children.values():
            yield from child.walk()

    def as_field(self, readable: dict[int, Field]) -> Field:
        """Return the node of the transplanted file."""
        if not self.children:
            return readable[id(self.node)]
        return self.node.with_children(tuple(c.as_field(readable) for c in self.children.values()))


def _grafts(column: PhysicalColumn, layout: FileLayout) -> Iterator[Graft]:
    yield Graft(
        index=column.index,
        unwraps_blob=column.kind is ColumnKind.BLOB_V1,
        # Pages of 2.0 files count the items of a list, not its rows.
        pages_hold_rows=layout.version.leaves_only or not column.is_below_list,
    )
    for index in range(column.index + 1, column.index + column.width):
        yield Graft(index=index, pages_hold_rows=False)


def _readable(column: PhysicalColumn, *, is_short_json: bool) -> Field:
    """Return the node of a column with a type that the codec reads correctly."""
    if column.kind is ColumnKind.BLOB_V2:
        return replace(column.field, metadata=_PACKED)
    if column.kind is ColumnKind.BLOB_V1:
        struct = replace(column.field, logical_type="struct", metadata=_PACKED)
        return struct.with_children(_POSITION_AND_SIZE)
    if column.width > 1:
        is_large = column.field.logical_type.startswith("large_")
        lists = "large_list" if is_large else "list"
        return replace(column.field, logical_type=lists, metadata=EMPTY_MAP, children=_BYTES)
    if is_short_json:
        return replace(column.field, logical_type="string", metadata=EMPTY_MAP)
    return column.field


def _numbered(
    fields: Sequence[Field], parent_id: FieldId, numbers: Iterator[int]
) -> Iterator[Field]:
    """Assign ids in pre-order."""
    for node in fields:
        node_id = FieldId(next(numbers))
        children = tuple(_numbered(node.children, node_id, numbers))
        yield replace(node, id=node_id, parent_id=parent_id, children=children)
