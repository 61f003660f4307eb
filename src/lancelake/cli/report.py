"""Reports of commands: tables, documents, lists."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TextIO, assert_never

import pyarrow as pa
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as Grid
from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, RowFormat, print_json, stderr, stdout
from lancelake.core.values.descriptions import Json, to_json

if TYPE_CHECKING:
    from lancelake.core.values.metadata import Snapshot

_GAP = 2
_CUT_LEAST = 8


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column; one with a `least` width may be truncated to it, an optional one omitted."""

    name: str
    is_right: bool = False
    is_optional: bool = False
    least: int | None = None
    style: str = "dim"


def right(name: str, *, is_optional: bool = False) -> TextColumn:
    """Return a column of numbers."""
    return TextColumn(name, is_right=True, is_optional=is_optional)


def cut(name: str) -> TextColumn:
    """Return a column that is truncated if there is not enough room."""
    return TextColumn(name, least=_CUT_LEAST)


@dataclass(slots=True)
class Listing:
    """Rows with column headers; a column without header and content is omitted."""

    columns: Sequence[TextColumn]
    rows: list[tuple[list[Text], str]] = field(default_factory=list)

    def add(self, *cells: Text | str, style: str = "") -> None:
        """Add a row."""
        self.rows.append(([Text(c) if isinstance(c, str) else c for c in cells], style))

    def least_width(self) -> int:
        """Return the minimum width of all columns."""
        natural = self._natural_widths()
        return _total(self._least(i, width) for i, width in natural.items())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table within the available width, line by line, since it may be long."""
        widths = self._fit_widths(options.max_width)
        heads = [Text(column.name, style=column.style) for column in self.columns]
        for cells, style in [(heads, ""), *self.rows]:
            line = Text(style=style, no_wrap=True, overflow="ellipsis")
            for i, width in widths.items():
                line.append_text(_fit(cells[i], width, is_right=self.columns[i].is_right))
                line.append(" " * _GAP)
            line.rstrip()
            yield line

    def _fit_widths(self, room: int) -> dict[int, int]:
        """Omit columns without room; distribute the rest among truncated columns."""
        natural = self._natural_widths()
        widths = {i: self._least(i, width) for i, width in natural.items()}
        for i in reversed(natural):
            if _total(widths.values()) > room and self.columns[i].is_optional:
                del widths[i]
        left = room - _total(widths.values())
        # Columns that need least are served first, so that none gets more than its share.
        hungry = sorted(widths, key=lambda i: natural[i] - widths[i])
        for waiting, i in zip(range(len(hungry), 0, -1), hungry, strict=True):
            more = max(0, min(left // waiting, natural[i] - widths[i]))
            widths[i] += more
            left -= more
        return widths

    def _natural_widths(self) -> dict[int, int]:
        """Return the widths without truncation; columns without content are omitted."""
        widths = [len(column.name) for column in self.columns]
        for cells, _ in self.rows:
            widths = [max(w, cell.cell_len) for w, cell in zip(widths, cells, strict=True)]
        return {i: width for i, width in enumerate(widths) if width}

    def _least(self, position: int, natural: int) -> int:
        column = self.columns[position]
        if column.least is None:
            return natural
        return min(natural, max(column.least, len(column.name)))


def facts(rows: Iterable[tuple[str, Text | str]]) -> Grid:
    """Return a list of dim names with their values."""
    table = Grid.grid(padding=(0, _GAP, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, text)
    return table


def _fit(cell: Text, width: int, *, is_right: bool) -> Text:
    lack = width - cell.cell_len
    if lack < 0:
        cut_cell = cell.copy()
        cut_cell.truncate(width, overflow="ellipsis")
        return cut_cell
    blank = Text(" " * lack)
    return blank.append_text(cell) if is_right else cell + blank


def _total(widths: Iterable[int]) -> int:
    return sum(width + _GAP for width in widths) - _GAP


_NEEDS_QUOTES = re.compile('[",\\r\\n]')


def json_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Json, ...]]:
    """Yield each row as values of JSON: bytes are base64."""
    for batch in batches:
        columns = [[to_json(value) for value in column] for column in batch.columns]
        yield from zip(*columns, strict=True)


def json_documents(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema
) -> Iterator[dict[str, Json]]:
    """Yield each row as a JSON object."""
    return (dict(zip(schema.names, row, strict=True)) for row in json_rows(batches))


def json_line(document: Json) -> str:
    """Return a document on one line."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def write_json_lines(documents: Iterable[Json], file: TextIO) -> None:
    """Write documents as JSON objects, one on each line."""
    file.writelines(f"{json_line(document)}\n" for document in documents)


def write_csv(names: Iterable[str], rows: Iterable[Iterable[Json]], file: TextIO) -> None:
    """Write rows as CSV with a header; nested values are JSON, nulls empty.

    An empty string is quoted, so that it differs from a null.
    """
    file.write(_csv_line(names))
    file.writelines(map(_csv_line, rows))


def _csv_line(values: Iterable[Json]) -> str:
    return ",".join(map(_csv_field, values)) + "\n"


def _csv_field(value: Json) -> str:
    match value:
        case None:
            return ""
        case bool() | dict() | list():
            text = json_line(value)
        case _:
            text = str(value)
    if text and not _NEEDS_QUOTES.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


def report(
    output: OutputFormat, body: Mapping[str, object], rows: Iterable[tuple[str, Text | str]]
) -> None:
    """Print `body` as JSON, or `rows` as a table."""
    if output is OutputFormat.JSON:
        print_json(dict(body))
    else:
        stdout().print(facts(rows))


def report_list(
    output: Literal[RowFormat.JSON, RowFormat.JSONL, RowFormat.CSV],
    body: Mapping[str, object],
    items: Sequence[Json],
    omitted: str = "",
) -> None:
    """Print `body` as JSON, or only its `items`, as JSON lines or CSV.

    `omitted` is a message about items that are not among them; a JSON body has its own field.
    """
    match output:
        case RowFormat.JSON:
            print_json(dict(body))
        case RowFormat.JSONL:
            write_json_lines(items, sys.stdout)
        case RowFormat.CSV:
            names = list(dict.fromkeys(name for item in items for name in item))
            if names:
                write_csv(names, (map(item.get, names) for item in items), sys.stdout)
        case _:
            assert_never(output)
    if omitted and output is not RowFormat.JSON:
        stderr().print(Text(omitted, style="dim"))


def print_listing(listing: Listing, note: str = "") -> None:
    """Print rows for people, and a note below them."""
    console = stdout()
    console.print(listing)
    if note:
        console.print(Text(note, style="dim"))


def version_body(snapshot: Snapshot) -> dict[str, object]:
    """Return a version for JSON output."""
    return {"uri": snapshot.location.uri, "branch": snapshot.branch, "version": snapshot.version}


def version_rows(snapshot: Snapshot) -> Iterator[tuple[str, Text]]:
    """Yield the version for table output."""
    yield "table", Text(phrases.printable(snapshot.location.uri), style="bold")
    number = Text(str(snapshot.version))
    if snapshot.branch is not None:
        number.append(f"  on branch {phrases.printable(snapshot.branch)}", style="cyan")
    yield "version", number


def report_version(
    output: OutputFormat,
    snapshot: Snapshot,
    body: Mapping[str, object] = MappingProxyType({}),
    rows: Iterable[tuple[str, Text | str]] = (),
) -> None:
    """Print a version, mostly the one that the command made, and more about it."""
    report(output, {**version_body(snapshot), **body}, [*version_rows(snapshot), *rows])


def older_versions(count: int, option: str) -> str:
    """Return a message about versions that an option leaves out."""
    return f"… {phrases.plural(count, 'older version')}: {option} 0 shows all"


def target_text(branch: str | None, version: int) -> str:
    """Format a version on a branch, as for `--at`."""
    return f"{branch}:{version}" if branch else str(version)
