"""Primary key of a schema, and filters of inserted keys."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lancelake.errors import InvalidRequestError
from lancelake.format.schema import Field, Schema, join_path

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
