"""How are rows shown? Side by side where they fit, one below the other where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.arrow_values import is_right_aligned, to_cell, to_json
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.tables import Column, Listing, facts
from lancelake.table.snapshot import Snapshot

_LEAST_WIDTH = 8
_MOST_WIDTH = 60


def print_rows(
    table: pa.Table, snapshot: Snapshot, output: OutputFormat, styles: Sequence[str] | None = None
) -> None:
    """Print rows that were read from a version, each in a style of its own if there are any."""
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
    console.print(Text(words.plural(table.num_rows, "row"), style="dim"))


def _side_by_side(schema: pa.Schema, rows: list[list[Text]], styles: Sequence[str]) -> Listing:
    columns = [
        Column(
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
    values = [[to_json(value) for value in column] for column in table.columns]
    names = table.column_names
    return {
        "version": snapshot.version,
        "columns": [{"name": f.name, "type": str(f.type)} for f in table.schema],
        "rows": [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)],
    }
