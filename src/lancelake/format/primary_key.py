"""Primary key of a schema, and filters of inserted keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format.ids import FieldId
from lancelake.format.schema import Field, Schema, join_path
from lancelake.proto.transaction_pb2 import Transaction

KEY = "lance-schema:unenforced-primary-key"
POSITION = f"{KEY}:position"

_YES = frozenset({b"true", b"1", b"yes", b"y", b"on"})
_NUMBER = re.compile(rb"\+?[0-9]{1,10}")
_MAX_POSITION = (1 << 32) - 1


def marks(metadata: Mapping[str, bytes]) -> tuple[bool, int]:
    """Return whether a field is part of the key, and its position (from 1; 0 without one)."""
    position = metadata.get(POSITION, b"")
    if _NUMBER.fullmatch(position) and int(position) <= _MAX_POSITION:
        return True, int(position)
    return metadata.get(KEY, b"").lower() in _YES, 0


def ensure_valid(schema: Schema) -> None:
    """Raise unless each field of the key is a leaf that can never be null or repeated."""
    for top in schema.fields:
        _ensure_below((top,))


def _ensure_below(trail: tuple[Field, ...]) -> None:
    node = trail[-1]
    if node.unenforced_primary_key:
        _ensure_key(trail)
    for child in node.children:
        _ensure_below((*trail, child))


def _ensure_key(trail: tuple[Field, ...]) -> None:
    path = join_path(node.name for node in trail)
    if any(node.nullable for node in trail):
        _refuse(path, "it and all its ancestors must not be nullable")
    if trail[-1].children:
        _refuse(path, "it must be a leaf")
    for ancestor in trail[:-1]:
        if ancestor.logical_type.startswith(("list", "large_list", "map")):
            _refuse(path, f"it must not be inside a {ancestor.logical_type}")


def _refuse(path: str, rule: str) -> None:
    msg = f"column {path} cannot be part of the primary key: {rule}"
    raise InvalidRequestError(msg, column=path)


def key_names(schema: Schema) -> tuple[str, ...]:
    """Return the columns of the key, those with a position first; empty without a key."""
    marked = [field for field in schema.fields if field.unenforced_primary_key]
    placed = sorted(
        marked,
        key=lambda f: (
            f.unenforced_primary_key_position == 0,
            f.unenforced_primary_key_position,
        ),
    )
    return tuple(field.name for field in placed)


DEFAULT_ITEMS = 8192
DEFAULT_PROBABILITY = 0.00057


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactKeys:
    """Hashes of all keys."""

    key_hashes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomKeys:
    """A split-block bloom filter over the keys."""

    bitmap: bytes
    num_bits: int
    number_of_items: int = DEFAULT_ITEMS
    probability: float = DEFAULT_PROBABILITY


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExistenceFilter:
    """Fields of the key, and a filter of the inserted keys."""

    field_ids: tuple[FieldId, ...]
    keys: ExactKeys | BloomKeys


def decode(message: Transaction.KeyExistenceFilter) -> KeyExistenceFilter:
    """Read a filter."""
    keys: ExactKeys | BloomKeys
    match message.WhichOneof("data"):
        case "exact":
            keys = ExactKeys(key_hashes=tuple(message.exact.key_hashes))
        case "bloom":
            keys = BloomKeys(
                bitmap=message.bloom.bitmap,
                num_bits=message.bloom.num_bits,
                number_of_items=message.bloom.number_of_items or DEFAULT_ITEMS,
                probability=message.bloom.probability or DEFAULT_PROBABILITY,
            )
        case _:
            raise CorruptTableError("a key filter has no keys")
    return KeyExistenceFilter(field_ids=tuple(FieldId(f) for f in message.field_ids), keys=keys)


def encode(value: KeyExistenceFilter) -> Transaction.KeyExistenceFilter:
    """Write a filter."""
    message = Transaction.KeyExistenceFilter(field_ids=value.field_ids)
    if isinstance(value.keys, ExactKeys):
        message.exact.key_hashes.extend(value.keys.key_hashes)
        message.exact.SetInParent()
    else:
        message.bloom.bitmap = value.keys.bitmap
        message.bloom.num_bits = value.keys.num_bits
        message.bloom.number_of_items = value.keys.number_of_items
        message.bloom.probability = value.keys.probability
    return message
