"""Schema of a table: a tree of fields, and its encoding as a flat list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError, suggestion
from lancelake.format.frozen import EMPTY_MAP, FrozenMap, restore_unknown, unknown_bytes
from lancelake.format.ids import NO_PARENT, FieldId
from lancelake.proto import file_pb2

EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"
BFLOAT16 = "lance.bfloat16"
JSON = "lance.json"
ARROW_JSON = "arrow.json"
BLOB_V2 = "lance.blob.v2"


def split_path(path: str) -> tuple[str, ...]:
    """Split a path at its dots; a segment in backticks may have dots and doubled backticks."""
    segments: list[str] = []
    rest = path
    while True:
        if rest.startswith("`"):
            end = _closing_backtick(path, rest)
            segments.append(rest[1:end].replace("``", "`"))
            rest = rest[end + 1 :]
            if not rest:
                return tuple(segments)
            if not rest.startswith("."):
                raise _bad_path(path)
            rest = rest[1:]
        else:
            segment, dot, rest = rest.partition(".")
            segments.append(segment)
            if not dot:
                return tuple(segments)


def quote_segment(name: str) -> str:
    """Quote a segment of a path if it needs quotes."""
    return quoted_name(name) if "." in name or "`" in name else name


def join_path(names: Iterable[str]) -> str:
    """Return the path that `split_path` splits into these names."""
    return ".".join(map(quote_segment, names))


def quoted_name(name: str) -> str:
    """Return a name in backticks, as Lance SQL, Spark SQL and the codec accept it."""
    return "`" + name.replace("`", "``") + "`"


def quoted_path(names: Iterable[str]) -> str:
    """Return a path with every name in backticks; unlike `join_path`, even of empty names."""
    return ".".join(map(quoted_name, names))


def split_list(text: str) -> tuple[str, ...]:
    """Split a list of paths at its commas; empty ones are left out."""
    return tuple(part for part in comma_parts(text) if part)


def join_list(paths: Iterable[Iterable[str]]) -> str:
    """Return the list that `split_list` splits into these paths."""
    return ", ".join(".".join(map(_listed_segment, path)) for path in paths)


def comma_parts(text: str) -> tuple[str, ...]:
    """Split a text at its commas, except those in backticks; parts may be empty."""
    parts: list[str] = [""]
    is_quoted = False
    for character in text:
        if character == "`":
            is_quoted = not is_quoted
        if character == "," and not is_quoted:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(part.strip() for part in parts)


def _listed_segment(name: str) -> str:
    is_plain = name == name.strip() and "," not in name
    return quote_segment(name) if is_plain else quoted_name(name)


def _closing_backtick(path: str, rest: str) -> int:
    position = 1
    while position < len(rest):
        if rest[position] != "`":
            position += 1
        elif rest[position : position + 2] == "``":
            position += 2
        else:
            return position
    raise _bad_path(path)


def _bad_path(path: str) -> InvalidRequestError:
    return InvalidRequestError(f"column path {path!r} has unbalanced backticks", column=path)


BLOB_KEY = "lance-encoding:blob"
_PACKED_KEYS = ("packed", "lance-encoding:packed")


class Encoding(Enum):
    """Encoding hint of legacy data files."""

    NONE = 0
    PLAIN = 1
    VAR_BINARY = 2
    DICTIONARY = 3
    RLE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DictionaryPage:
    """Position of a dictionary column's values in a legacy manifest."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A node of the schema tree."""

    name: str
    id: FieldId
    parent_id: FieldId = NO_PARENT
    logical_type: str
    nullable: bool = True
    children: tuple[Field, ...] = ()
    metadata: FrozenMap[str, bytes] = EMPTY_MAP
    encoding: Encoding = Encoding.NONE
    dictionary: DictionaryPage | None = None
    storage_class: str = ""
    unenforced_primary_key: bool = False
    unenforced_primary_key_position: int = 0
    unknown: bytes = b""

    def walk(self) -> Iterator[Field]:
        """Yield this node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def child(self, name: str) -> Field | None:
        """Return the direct child of this name."""
        return next((c for c in self.children if c.name == name), None)

    def with_children(self, children: tuple[Field, ...]) -> Field:
        """Return this node with other children."""
        return replace(self, children=children)

    @property
    def extension_name(self) -> str | None:
        """Name of the Arrow extension type, if any."""
        name = self.metadata.get(EXTENSION_NAME)
        return name.decode() if name else None

    @property
    def is_json(self) -> bool:
        """Whether values are JSON, stored as binary JSON."""
        return self.logical_type == "json"

    @property
    def is_packed(self) -> bool:
        """Whether a struct is packed into a single column."""
        values = (self.metadata.get(key, b"").lower() for key in _PACKED_KEYS)
        return self.logical_type == "struct" and b"true" in values

    @property
    def is_blob_v1(self) -> bool:
        """Whether values are stored apart in the data file, with descriptors in the column."""
        if self.logical_type == "blob":
            return True
        return self.logical_type in ("large_binary", "binary") and BLOB_KEY in self.metadata

    @property
    def is_blob_v2(self) -> bool:
        """Whether the column has descriptors of blobs in other files."""
        return self.extension_name == BLOB_V2

    @property
    def owns_column(self) -> bool:
        """Whether a data file of version 2.1 or later has a column for this node."""
        return not self.children or self.is_packed or self.is_blob_v2


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The fields of a table and the metadata attached to its Arrow schema."""

    fields: tuple[Field, ...]
    metadata: FrozenMap[str, bytes] = field(default=EMPTY_MAP)

    def walk(self) -> Iterator[Field]:
        """Yield all nodes, parents first."""
        for top in self.fields:
            yield from top.walk()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the top-level fields."""
        return tuple(f.name for f in self.fields)

    @property
    def max_field_id(self) -> int:
        """Highest id in the tree, -1 when there is none."""
        return max((f.id for f in self.walk()), default=-1)

    def by_id(self) -> dict[FieldId, Field]:
        """Return the nodes by id; of two with the same id, the first."""
        by_id: dict[FieldId, Field] = {}
        for node in self.walk():
            by_id.setdefault(node.id, node)
        return by_id

    def find(self, path: str) -> tuple[Field, ...] | None:
        """Return the nodes from the top to the one at `path`, or None."""
        return self._find(split_path(path), exact=True) or self._find(split_path(path), exact=False)

    def resolve(self, path: str) -> tuple[Field, ...]:
        """Like `find`, but raise for an unknown path."""
        field = self.find(path)
        if field is None:
            raise self._unknown_column(path)
        return field

    def path_of(self, field_id: int) -> str | None:
        """Return the quoted path to the node of this id."""
        return join_path(node.name for node in self.trail_of(field_id)) or None

    def trail_of(self, field_id: int) -> tuple[Field, ...]:
        """Return the nodes from the top to the one of this id; none if there is none."""
        trails = (_trail(top, field_id) for top in self.fields)
        return next((trail for trail in trails if trail), ())

    def select(self, names: tuple[str, ...]) -> Schema:
        """Return the schema of these top-level columns, in this order."""
        return replace(self, fields=tuple(self._top(name) for name in names))

    def primary_key(self) -> tuple[Field, ...]:
        """Return the fields of the unenforced primary key in key order."""
        keys = [f for f in self.walk() if f.unenforced_primary_key]

        def order(f: Field) -> tuple[bool, int, int]:
            position = f.unenforced_primary_key_position
            return (position == 0, position, f.id)

        return tuple(sorted(keys, key=order))

    def _top(self, name: str) -> Field:
        field = _named(self.fields, name, exact=True)
        if field is None:
            raise self._unknown_column(name)
        return field

    def _unknown_column(self, path: str) -> InvalidRequestError:
        advice = suggestion(path, self.names, "columns")
        return InvalidRequestError(f"Column {path} does not exist", column=path, action=advice)

    def _find(self, segments: tuple[str, ...], *, exact: bool) -> tuple[Field, ...] | None:
        trail = follow(self.fields, segments, exact=exact)
        return trail if len(trail) == len(segments) else None


def follow(
    fields: tuple[Field, ...],
    names: Sequence[str],
    *,
    exact: bool,
    opens: Callable[[Field], bool] = lambda _: True,
) -> tuple[Field, ...]:
    """Resolve names from the top; return the nodes up to the first unknown name.

    Children of a node are searched only where `opens` allows it.
    """
    trail: list[Field] = []
    level = fields
    for name in names:
        node = _named(level, name, exact=exact)
        if node is None:
            break
        trail.append(node)
        level = node.children if opens(node) else ()
    return tuple(trail)


def _named(level: tuple[Field, ...], name: str, *, exact: bool) -> Field | None:
    if exact:
        return next((f for f in level if f.name == name), None)
    lowered = name.lower()
    return next((f for f in level if f.name.lower() == lowered), None)


def _trail(node: Field, field_id: int) -> tuple[Field, ...]:
    if node.id == field_id:
        return (node,)
    for child in node.children:
        below = _trail(child, field_id)
        if below:
            return (node, *below)
    return ()


MAX_DEPTH = 64
_ENCODINGS: dict[int, Encoding] = {encoding.value: encoding for encoding in Encoding}


def decode_schema(fields: Iterable[file_pb2.Field], metadata: Mapping[str, bytes]) -> Schema:
    """Build the tree; raise for a child before its parent, or too deep a tree."""
    messages = list(fields)
    parents = _parent_positions(messages)
    children: list[list[Field]] = [[] for _ in messages]
    top: list[Field] = []
    # From the end, so that the children of a node are complete when it is created.
    for position in reversed(range(len(messages))):
        node = _decode_field(messages[position], tuple(reversed(children[position])))
        parent = parents[position]
        (top if parent is None else children[parent]).append(node)
    return Schema(fields=tuple(reversed(top)), metadata=FrozenMap(dict(metadata)))


def encode_schema(schema: Schema) -> list[file_pb2.Field]:
    """Flatten the tree, parents first."""
    return [_encode_field(node) for node in schema.walk()]


def _parent_positions(nodes: list[file_pb2.Field]) -> list[int | None]:
    seen: dict[int, int] = {}
    depth: list[int] = []
    parents: list[int | None] = []
    for position, node in enumerate(nodes):
        parent_id = node.parent_id
        parent = None if parent_id == NO_PARENT else seen.get(parent_id)
        if parent is None and parent_id != NO_PARENT:
            msg = f"field {node.name!r} has parent {parent_id}, which does not precede it"
            raise CorruptTableError(msg, field=node.name, parent_id=parent_id)
        depth.append(0 if parent is None else depth[parent] + 1)
        if depth[-1] > MAX_DEPTH:
            msg = f"field {node.name!r} is nested deeper than {MAX_DEPTH} levels"
            raise UnsupportedError(msg, field=node.name)
        parents.append(parent)
        seen[node.id] = position
    return parents


def _decode_field(message: file_pb2.Field, children: tuple[Field, ...]) -> Field:
    page = message.dictionary if message.HasField("dictionary") else None
    return Field(
        name=message.name,
        id=FieldId(message.id),
        parent_id=FieldId(message.parent_id),
        logical_type=message.logical_type,
        nullable=message.nullable,
        children=children,
        metadata=_decode_metadata(message),
        encoding=_ENCODINGS.get(message.encoding, Encoding.NONE),
        dictionary=DictionaryPage(offset=page.offset, length=page.length) if page else None,
        storage_class=message.storage_class,
        unenforced_primary_key=message.unenforced_primary_key,
        unenforced_primary_key_position=message.unenforced_primary_key_position,
        unknown=unknown_bytes(message),
    )


def _decode_metadata(message: file_pb2.Field) -> FrozenMap[str, bytes]:
    if not message.metadata and not message.extension_name:
        return EMPTY_MAP
    metadata = dict(message.metadata)
    if message.extension_name:
        metadata[EXTENSION_NAME] = message.extension_name.encode()
    _ensure_text(metadata.get(EXTENSION_NAME, b""), message.name)
    return FrozenMap(metadata)


def _ensure_text(extension_name: bytes, field: str) -> None:
    try:
        extension_name.decode()
    except UnicodeDecodeError as error:
        msg = f"field {field!r} has an extension name that is not text"
        raise CorruptTableError(msg, field=field) from error


def _encode_field(node: Field) -> file_pb2.Field:
    message = file_pb2.Field(
        name=node.name,
        id=node.id,
        parent_id=node.parent_id,
        logical_type=node.logical_type,
        nullable=node.nullable,
        encoding=file_pb2.Encoding.Name(node.encoding.value),
        extension_name=node.extension_name or "",
        storage_class=node.storage_class,
        unenforced_primary_key=node.unenforced_primary_key,
        unenforced_primary_key_position=node.unenforced_primary_key_position,
    )
    if node.dictionary is not None:
        message.dictionary.offset = node.dictionary.offset
        message.dictionary.length = node.dictionary.length
    for key, value in node.metadata.items():
        message.metadata[key] = value
    restore_unknown(message, node.unknown)
    return message
