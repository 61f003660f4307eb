"""Show rows: side by side if they fit, else one below the other."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.arrow_values import is_right_aligned, to_cell, to_json
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.tables import Listing, TextColumn, facts
from lancelake.commit.snapshot import Snapshot

_LEAST_WIDTH = 8
_MOST_WIDTH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRows:
    """The first rows of a result, and whether there are more."""

    table: pa.Table
    has_more: bool


def first_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most: int | None) -> FirstRows:
    """Read the rows to show, and one more to know whether there are more."""
    kept: list[pa.RecordBatch] = []
    left = most
    for batch in batches:
        kept.append(batch if left is None else batch.slice(0, left))
        if left is not None:
            if batch.num_rows > left:
                return FirstRows(table=pa.Table.from_batches(kept, schema), has_more=True)
            left -= batch.num_rows
    return FirstRows(table=pa.Table.from_batches(kept, schema), has_more=False)


def print_json_rows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, snapshot: Snapshot, most: int | None
) -> None:
    """Print rows as one document, row by row; `complete` is whether these are all."""
    head = {"version": snapshot.version, "columns": _columns(schema)}
    opening = json.dumps(head, indent=2, ensure_ascii=False).removesuffix("\n}")
    sys.stdout.write(f'{opening},\n  "rows": [')
    written, complete = 0, True
    for batch in batches:
        rows = _json_rows(batch)
        if most is not None and written + len(rows) > most:
            rows, complete = rows[: most - written], False
        for row in rows:
            separator = ",\n    " if written else "\n    "
            sys.stdout.write(separator + json.dumps(row, ensure_ascii=False, allow_nan=False))
            written += 1
        if not complete:
            break
    end = "\n  ]" if written else "]"
    sys.stdout.write(f'{end},\n  "complete": {json.dumps(complete)}\n}}\n')


def print_rows(
    table: pa.Table,
    snapshot: Snapshot,
    output: OutputFormat,
    styles: Sequence[str] | None = None,
    *,
    has_more: bool = False,
) -> None:
    """Print rows of a version, optionally each in its own style."""
    if output is OutputFormat.JSON:
        print_json(_document(table, snapshot))
        return
    console = stdout()
    cells = [[to_cell(value) for value in column] for column in table.columns]
    rows = [list(row) for row in zip(*cells, strict=True)]
    looks = [""] * len(rows) if styles is None else styles
    listing = _side_by_side(table.schema, rows, looks)
    if listing.least_width() <= console.width:
        console.print(listing)
    else:
        _print_records(console, table.column_names, rows, looks)
    amount = words.plural(table.num_rows, "row")
    more = "; more rows available, use --rows" if has_more else ""
    console.print(Text(amount + more, style="dim"))


def _side_by_side(schema: pa.Schema, rows: list[list[Text]], styles: Sequence[str]) -> Listing:
    columns = [
        TextColumn(
            words.printable(field.name),
            is_right=is_right_aligned(field.type),
            least=_LEAST_WIDTH,
            style="bold",
        )
        for field in schema
    ]
    listing = Listing(columns)
    for row, style in zip(rows, styles, strict=True):
        for cell in row:
            cell.truncate(_MOST_WIDTH, overflow="ellipsis")
        listing.add(*row, style=style)
    return listing


def _print_records(
    console: Console, names: list[str], rows: list[list[Text]], styles: Sequence[str]
) -> None:
    labels = [words.printable(name) for name in names]
    for number, (row, style) in enumerate(zip(rows, styles, strict=True), start=1):
        console.print(Text(f"{number} of {len(rows)}", style=style or "bold"))
        console.print(facts(zip(labels, row, strict=True)))


def _document(table: pa.Table, snapshot: Snapshot) -> dict[str, Any]:  # JSON
    return {
        "version": snapshot.version,
        "columns": _columns(table.schema),
        "rows": _json_rows(table),
    }


def _columns(schema: pa.Schema) -> list[dict[str, str]]:
    return [{"name": f.name, "type": str(f.type)} for f in schema]


def _json_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:  # JSON
    values = [[to_json(value) for value in column] for column in rows.columns]
    names = rows.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
