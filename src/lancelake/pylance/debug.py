"""Texts of schemas, manifests, fragments and transactions, for debugging."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from lancelake.core.table_place import TablePlace
from lancelake.core.values.metadata import Schema
from lancelake.pylance._values.fragment_metadata import FragmentMetadata, to_fragment
from lancelake.pylance.dataset import LanceDataset

__all__ = ["format_fragment", "format_manifest", "format_schema", "list_transactions"]

_INDENT = "    "
_SHOWN_BYTES = 16


def format_schema(dataset: LanceDataset) -> str:
    """Return the schema with field ids as text."""
    return _text(dataset._snapshot.manifest.schema)


def format_manifest(dataset: LanceDataset) -> str:
    """Return the manifest of the open version as text."""
    return _text(dataset._snapshot.manifest)


def format_fragment(fragment: FragmentMetadata, dataset: LanceDataset) -> str:
    """Return a fragment as text, with the fields of each data file."""
    entry = to_fragment(fragment)
    by_id = {field.id: field for field in dataset._snapshot.manifest.schema.walk()}
    names = [
        f"{file.path}: {', '.join(by_id[i].name for i in file.fields if i in by_id)}"
        for file in entry.files
    ]
    used = {i for file in entry.files for i in file.fields}
    stored = Schema(
        fields=tuple(f for f in dataset._snapshot.manifest.schema.fields if f.id in used)
    )
    parts = {**_parts(entry), "schema": stored}
    return "\n".join([_block("PrettyPrintableFragment", parts, 0), *names])


def list_transactions(dataset: LanceDataset, max_transactions: int = 10) -> list[str]:
    """Return the latest transactions as text, newest first; those of old versions may be gone."""
    texts: list[str] = []
    for snapshot in TablePlace(dataset._snapshot.location).snapshots(newest_first=True):
        if len(texts) == max_transactions:
            break
        if snapshot.version <= dataset.version and snapshot.transaction is not None:
            texts.append(_text(snapshot.transaction))
    return texts


def _parts(value: Any) -> dict[str, Any]:
    named = [f.name for f in fields(value) if f.name[0] != "_"]
    return {name: getattr(value, name) for name in named}


def _block(title: str, parts: Mapping[str, Any], depth: int) -> str:
    inner = _INDENT * (depth + 1)
    lines = [f"{inner}{name}: {_member(name, part, depth + 1)},\n" for name, part in parts.items()]
    return f"{title} {{\n{''.join(lines)}{_INDENT * depth}}}"


def _member(name: str, value: Any, depth: int) -> str:
    if name != "logical_type":
        return _text(value, depth)
    return f"LogicalType(\n{_INDENT * (depth + 1)}{_text(value)},\n{_INDENT * depth})"


def _text(value: Any, depth: int = 0) -> str:
    inner, outer = _INDENT * (depth + 1), _INDENT * depth
    if is_dataclass(value) and not isinstance(value, type):
        return _block(type(value).__name__, _parts(value), depth)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes) and len(value) > _SHOWN_BYTES:
        return f"<{len(value)} bytes>"
    if isinstance(value, bytes) or not hasattr(value, "__iter__"):
        return repr(value)
    if hasattr(value, "items"):
        lines = [f"{inner}{_text(key)}: {_text(part, depth + 1)},\n" for key, part in value.items()]
        return f"{{\n{''.join(lines)}{outer}}}" if lines else "{}"
    lines = [f"{inner}{_text(part, depth + 1)},\n" for part in value]
    return f"[\n{''.join(lines)}{outer}]" if lines else "[]"
