"""Texts of public objects for `repr`."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any

from lancelake.commit.snapshot import Snapshot

_MOST = 200


def call_text(instance: object, *values: object, **named: object) -> str:
    """Return `Class(value, name=value)`; names whose value is None are omitted."""
    parts = [_short(value) for value in values]
    parts += [f"{name}={_short(value)}" for name, value in named.items() if value is not None]
    return f"{type(instance).__name__}({', '.join(parts)})"


def version_text(instance: object, snapshot: Snapshot, **named: object) -> str:
    """Return `call_text` of something that belongs to a version of a table."""
    return call_text(instance, snapshot.location.uri, version=snapshot.version, **named)


def chosen(request: Any) -> dict[str, object]:
    """Return the fields of a dataclass whose values differ from their defaults."""
    values = {field: getattr(request, field.name) for field in fields(request)}
    return {field.name: value for field, value in values.items() if _is_chosen(field, value)}


def _is_chosen(field: Field[Any], value: object) -> bool:
    if field.default is None or value is None:  # values such as arrays have no plain comparison
        return value is not field.default
    if field.default_factory is not MISSING:
        return bool(value != field.default_factory())
    return field.default is MISSING or bool(value != field.default)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"
