"""Show rows: side by side if they fit, else one below the other."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import assert_never

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.arrow_values import is_right_aligned, to_cell
from lancelake.cli.console import RowFormat, stderr, stdout
from lancelake.cli.row_text import json_lines, write_csv, write_json_lines
from lancelake.cli.tables import Listing, TextColumn, facts
from lancelake.commit.snapshot import Snapshot
from lancelake.table.describe.first_rows import first_rows

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
        first = first_rows(batches, schema, _SCREEN if rows is None else rows or None)
        table, styles = styled(first.table)
        _print_table(table, styles, has_more=first.has_more)
        return
    limited = _Limited(batches, rows or None)
    match output:
        case RowFormat.JSON:
            _write_json(limited, schema, snapshot)
        case RowFormat.JSONL:
            write_json_lines(limited, sys.stdout)
        case RowFormat.CSV:
            write_csv(limited, schema, sys.stdout)
        case _:
            assert_never(output)
    if limited.has_more and output is not RowFormat.JSON:
        stderr().print(Text(_MORE, style="dim"))


def print_rows(table: pa.Table, snapshot: Snapshot, output: RowFormat) -> None:
    """Print all rows of a table."""
    print_stream(table.to_batches(), table.schema, snapshot, output, 0)


class _Limited:
    """The first rows of a stream; `has_more` is whether it was cut."""

    def __init__(self, batches: Iterable[pa.RecordBatch], most: int | None) -> None:
        self._batches = batches
        self._left = most
        self.has_more = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            if self._left is None:
                yield batch
                continue
            if batch.num_rows > self._left:
                self.has_more = True
                yield batch.slice(0, self._left)
                return
            self._left -= batch.num_rows
            yield batch


def _write_json(batches: _Limited, schema: pa.Schema, snapshot: Snapshot) -> None:
    """Write rows as one document, row by row; `truncated` is whether more exist."""
    columns = [{"name": f.name, "type": str(f.type)} for f in schema]
    head = {"version": snapshot.version, "columns": columns}
    opening = json.dumps(head, indent=2, ensure_ascii=False).removesuffix("\n}")
    sys.stdout.write(f'{opening},\n  "rows": [')
    separator = "\n    "
    for batch in batches:
        for line in json_lines(batch):
            sys.stdout.write(separator + line)
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
    amount = words.plural(table.num_rows, "row")
    console.print(Text(f"{amount}; {_MORE}" if has_more else amount, style="dim"))


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
