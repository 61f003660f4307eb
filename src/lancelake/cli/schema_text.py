"""Format schemas: types as text, fields as a tree."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from lancelake.cli.words import printable, shortened
from lancelake.format.extension_names import EXTENSION_METADATA, EXTENSION_NAME
from lancelake.format.primary_key import KEY, POSITION
from lancelake.format.schema import Field, Schema

_HIDDEN_KEYS = (EXTENSION_NAME, EXTENSION_METADATA, KEY, POSITION)
_VALUE_MOST = 40


def type_text(field: Field) -> str:
    """Format the type of a field: `int64`, `float[768]`, `timestamp[us, UTC]`, `struct`."""
    if field.is_blob_v1 or field.is_blob_v2:
        return "blob"
    name = logical_type_text(field.logical_type)
    extension = field.extension_name
    shows_extension = extension is not None and not field.is_json
    return f"{name} ({printable(extension or '')})" if shows_extension else name


def logical_type_text(logical_type: str) -> str:
    """Format a logical type in the usual notation; an unknown type is unchanged."""
    kind, _, rest = logical_type.partition(":")
    try:
        match kind:
            case "fixed_size_list":
                inner, _, length = rest.rpartition(":")
                return f"{logical_type_text(inner)}[{length}]"
            case "fixed_size_binary":
                return f"binary[{rest}]"
            case "timestamp":
                unit, _, zone = rest.partition(":")
                return f"timestamp[{unit}]" if zone == "-" else f"timestamp[{unit}, {zone}]"
            case "decimal":
                bits, precision, scale = rest.split(":")
                return f"decimal{bits}({precision}, {scale})"
            case "dict":
                value, key, _ordered = rest.rsplit(":", 2)
                return f"dictionary<{logical_type_text(value)}, {key}>"
            case "time32" | "time64" | "duration":
                return f"{kind}[{rest}]"
            case "date32" | "date64":
                return kind
            case _:
                return printable(logical_type.removesuffix(".struct"))
    except ValueError:
        return printable(logical_type)


def tree(schema: Schema) -> Iterator[tuple[Field, str]]:
    """Yield each field with its name indented as a tree."""
    for field in schema.fields:
        yield field, printable(field.name)
        yield from _below(field, "")


def notes(field: Field) -> Text:
    """Format additional properties: key, nullability, metadata."""
    parts: list[tuple[str, str]] = []
    if field.unenforced_primary_key:
        position = field.unenforced_primary_key_position
        parts.append((f"primary key {position}" if position else "primary key", "cyan"))
    if field.is_packed:
        parts.append(("packed", "dim"))
    for key, value in sorted(field.metadata.items()):
        if key not in _HIDDEN_KEYS:
            text = shortened(printable(value.decode(errors="replace")), _VALUE_MOST)
            parts.append((f"{printable(key)}={text}", "dim"))
    return Text(", ").join(Text(text, style) for text, style in parts)


def _below(field: Field, indent: str) -> Iterator[tuple[Field, str]]:
    for child in field.children:
        is_last = child is field.children[-1]
        yield child, f"{indent}{'└ ' if is_last else '├ '}{printable(child.name)}"
        yield from _below(child, indent + ("  " if is_last else "│ "))
