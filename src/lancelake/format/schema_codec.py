"""Protobuf codec of schemas: conversion between the tree and the flat field list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format.extension_names import EXTENSION_NAME
from lancelake.format.frozen import EMPTY_MAP, FrozenMap, restore_unknown, unknown_bytes
from lancelake.format.ids import NO_PARENT, FieldId
from lancelake.format.schema import DictionaryPage, Encoding, Field, Schema
from lancelake.proto import file_pb2

MAX_DEPTH = 64
_ENCODINGS: dict[int, Encoding] = {encoding.value: encoding for encoding in Encoding}


def decode(fields: Iterable[file_pb2.Field], metadata: Mapping[str, bytes]) -> Schema:
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


def encode(schema: Schema) -> list[file_pb2.Field]:
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
