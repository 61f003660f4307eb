"""Rows, values and schemas as text."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa
import typer
from rich.console import Console
from rich.text import Text

from lancelake.cli import phrases, report
from lancelake.cli.console import RowFormat, stderr, stdout
from lancelake.cli.phrases import printable, shorten, size
from lancelake.core.values.descriptions import FirstRows, is_bytes, is_number, text_of, unwrap
from lancelake.core.values.metadata import (
    EXTENSION_METADATA,
    EXTENSION_NAME,
    KEY,
    POSITION,
    logical_types,
)
from lancelake.errors import LanceTableError

if TYPE_CHECKING:
    from lancelake.core.values.metadata import Field, Schema, Snapshot

_TEXT_MOST = 200
_NESTED_MOST = 100
_HEX_BYTES = 8
_FIRST_ITEMS = 4
_FIRST_VECTOR_ITEMS = 3
_FIRST_MEMBERS = 6
_DIGITS = 5


def to_cell(value: pa.Scalar) -> Text:
    """Return a value as a short line: bytes as hex and length, lists by their first items."""
    value = unwrap(value)
    if not value.is_valid:
        return Text("null", style="dim")
    if is_bytes(value.type):
        return _bytes_cell(value)
    if pa.types.is_fixed_size_list(value.type) and is_number(value.type.value_type):
        return _vector_cell(value)
    if pa.types.is_nested(value.type):
        return Text(shorten(_nested(value), _NESTED_MOST))
    return Text(shorten(printable(text_of(value)), _TEXT_MOST))


def is_right_aligned(dtype: pa.DataType) -> bool:
    """Whether values of this type are numbers."""
    return is_number(dtype) or bool(pa.types.is_decimal(dtype))


def _bytes_cell(value: pa.Scalar) -> Text:
    data = value.as_py()
    more = "…" if len(data) > _HEX_BYTES else ""
    return Text.assemble(data[:_HEX_BYTES].hex(), more, (f" {size(len(data))}", "dim"))


def _vector_cell(value: pa.Scalar) -> Text:
    items = value.values
    first = ", ".join(_short(unwrap(item)) for item in items[:_FIRST_VECTOR_ITEMS])
    more = ", …" if len(items) > _FIRST_VECTOR_ITEMS else ""
    return Text.assemble(f"[{first}{more}]", (f" {len(items)}d", "dim"))


def _nested(value: pa.Scalar) -> str:
    """Return a nested value, first to its first items."""
    value = unwrap(value)
    dtype = value.type
    if not value.is_valid:
        return "null"
    if pa.types.is_struct(dtype):
        members = [(dtype.field(i).name, i) for i in range(min(dtype.num_fields, _FIRST_MEMBERS))]
        parts = [f"{printable(name)}: {_nested(value[i])}" for name, i in members]
        return "{" + ", ".join(parts + ["…"] * (dtype.num_fields > _FIRST_MEMBERS)) + "}"
    if pa.types.is_map(dtype):
        entries = value.values
        parts = [f"{_nested(e[0])}: {_nested(e[1])}" for e in entries[:_FIRST_ITEMS]]
        return "{" + ", ".join(parts + ["…"] * (len(entries) > _FIRST_ITEMS)) + "}"
    if pa.types.is_nested(dtype):
        items = value.values
        parts = [_nested(item) for item in items[:_FIRST_ITEMS]]
        return "[" + ", ".join(parts + [f"… {len(items)}"] * (len(items) > _FIRST_ITEMS)) + "]"
    if is_bytes(dtype):
        return _bytes_cell(value).plain
    text = printable(text_of(value))
    is_text = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
    return f'"{text}"' if is_text else text


def _short(value: pa.Scalar) -> str:
    """Return an element of a vector with few digits."""
    if not value.is_valid:
        return "null"
    plain = value.as_py()
    return f"{plain:.{_DIGITS}g}" if isinstance(plain, float) else str(plain)


_LEAST_WIDTH = 8
_MOST_WIDTH = 60
_SCREEN = 100
_MORE = "more rows available, use --rows"


def print_stream(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    snapshot: Snapshot,
    output: RowFormat,
    rows: int | None,
    styled: Callable[[pa.Table], tuple[pa.Table, Sequence[str] | None]] = lambda t: (t, None),
) -> None:
    """Print the rows of a result, at most as many as `--rows` states.

    Formats for programs are written batch by batch. `styled` prepares a table for people.
    """
    if output is RowFormat.TABLE:
        first = FirstRows(batches, _SCREEN if rows is None else rows or None)
        table, styles = styled(first.table(schema))
        _print_table(table, styles, has_more=first.has_more)
        return
    first = FirstRows(batches, rows or None)
    match output:
        case RowFormat.JSON:
            _write_json(first, schema, snapshot)
        case RowFormat.JSONL:
            report.write_json_lines(report.json_documents(first, schema), sys.stdout)
        case RowFormat.CSV:
            report.write_csv(schema.names, report.json_rows(first), sys.stdout)
        case _:
            assert_never(output)
    if first.has_more and output is not RowFormat.JSON:
        stderr().print(Text(_MORE, style="dim"))


def print_rows(table: pa.Table, snapshot: Snapshot, output: RowFormat) -> None:
    """Print all rows of a table."""
    print_stream(table.to_batches(), table.schema, snapshot, output, 0)


def _write_json(batches: FirstRows, schema: pa.Schema, snapshot: Snapshot) -> None:
    """Write rows as one document, row by row; `truncated` is whether more exist."""
    columns = [{"name": f.name, "type": str(f.type)} for f in schema]
    head = {"version": snapshot.version, "columns": columns}
    opening = json.dumps(head, indent=2, ensure_ascii=False).removesuffix("\n}")
    sys.stdout.write(f'{opening},\n  "rows": [')
    separator = "\n    "
    for document in report.json_documents(batches, schema):
        sys.stdout.write(separator + report.json_line(document))
        separator = ",\n    "
    end = "\n  ]" if separator.startswith(",") else "]"
    sys.stdout.write(f'{end},\n  "truncated": {json.dumps(batches.has_more)}\n}}\n')


def _print_table(table: pa.Table, styles: Sequence[str] | None, *, has_more: bool) -> None:
    """Print rows for people, optionally each in its own style."""
    console = stdout()
    cells = [[to_cell(value) for value in column] for column in table.columns]
    rows = [list(row) for row in zip(*cells, strict=True)]
    looks = [""] * len(rows) if styles is None else styles
    listing = _side_by_side(table.schema, rows, looks)
    if listing.least_width() <= console.width:
        console.print(listing)
    else:
        _print_records(console, table.column_names, rows, looks)
    amount = phrases.plural(table.num_rows, "row")
    console.print(Text(f"{amount}; {_MORE}" if has_more else amount, style="dim"))


def _side_by_side(
    schema: pa.Schema, rows: list[list[Text]], styles: Sequence[str]
) -> report.Listing:
    columns = [
        report.TextColumn(
            phrases.printable(field.name),
            is_right=is_right_aligned(field.type),
            least=_LEAST_WIDTH,
            style="bold",
        )
        for field in schema
    ]
    listing = report.Listing(columns)
    for row, style in zip(rows, styles, strict=True):
        for cell in row:
            cell.truncate(_MOST_WIDTH, overflow="ellipsis")
        listing.add(*row, style=style)
    return listing


def _print_records(
    console: Console, names: list[str], rows: list[list[Text]], styles: Sequence[str]
) -> None:
    labels = [phrases.printable(name) for name in names]
    for number, (row, style) in enumerate(zip(rows, styles, strict=True), start=1):
        console.print(Text(f"{number} of {len(rows)}", style=style or "bold"))
        console.print(report.facts(zip(labels, row, strict=True)))


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
            text = shorten(printable(value.decode(errors="replace")), _VALUE_MOST)
            parts.append((f"{printable(key)}={text}", "dim"))
    return Text(", ").join(Text(text, style) for text, style in parts)


def _below(field: Field, indent: str) -> Iterator[tuple[Field, str]]:
    for child in field.children:
        is_last = child is field.children[-1]
        yield child, f"{indent}{'└ ' if is_last else '├ '}{printable(child.name)}"
        yield from _below(child, indent + ("  " if is_last else "│ "))


_ALIASES = {
    "boolean": "bool",
    "date": "date32:day",
    "float16": "halffloat",
    "float32": "float",
    "float64": "double",
    "text": "string",
}
_LIST = re.compile(r"list<(?P<item>.+)>")
_VECTOR = re.compile(r"(?P<item>.+)\[(?P<length>[1-9][0-9]*)\]")
_TIMESTAMP = re.compile(r"timestamp\[(?P<unit>s|ms|us|ns)(?:, *(?P<zone>.+))?\]")


def parse_type(text: str) -> pa.DataType:
    """Parse `int64`, `float[768]`, `list<string>`, `timestamp[us, UTC]` and logical types."""
    try:
        return _parse(text.strip())
    except (LanceTableError, ValueError, pa.ArrowException) as error:
        msg = f"{text!r} is not a type; examples are int64, string, float[768], list<string>"
        raise typer.BadParameter(msg) from error


def _parse(text: str) -> pa.DataType:
    if match := _LIST.fullmatch(text):
        return pa.list_(_parse(match["item"]))
    if match := _TIMESTAMP.fullmatch(text):
        return pa.timestamp(match["unit"], match["zone"])
    if match := _VECTOR.fullmatch(text):
        return pa.list_(_parse(match["item"]), int(match["length"]))
    return logical_types.to_arrow(_ALIASES.get(text, text))
