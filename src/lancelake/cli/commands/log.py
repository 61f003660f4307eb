"""`lancelake log`: show the version history of a table."""

from __future__ import annotations

import itertools
from typing import Annotated

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_at
from lancelake.cli.console import RowFormat, stdout
from lancelake.cli.options import At, RowOutput, StorageOptions, Uri, location
from lancelake.cli.report import older_versions, report_list
from lancelake.cli.tables import Listing, TextColumn, cut, right
from lancelake.clock import SystemClock
from lancelake.table.describe import operations
from lancelake.table.describe.log import LogEntry, log_document, log_entries, version_names
from lancelake.table.version_delta import live_rows

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_COLUMNS = (
    right("version"),
    right("when"),
    TextColumn("operation"),
    *(right(name) for name in ("rows", "", "")),
    *(right(name, is_optional=True) for name in ("fragments", "", "")),
    cut("what"),
)

_LIMIT = "--limit"

Limit = Annotated[
    int, typer.Option(_LIMIT, "-n", min=0, help="Maximum number of versions; 0 for all.")
]


@app.command()
def log(
    uri: Uri,
    at: At = None,
    limit: Limit = 20,
    options: StorageOptions = None,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """Show the versions and their operations, newest first.

    With --at, the history of that version.
    """
    newest = open_at(location(uri, options), at)
    names = version_names(newest)
    count = limit or len(names)
    entries = itertools.islice(log_entries(newest, names), count)
    older = max(0, len(names) - count)
    if output is RowFormat.TABLE:
        _print(list(entries), older)
        return
    versions = [log_document(entry) for entry in entries]
    body = {"uri": newest.location.uri, "versions": versions, "truncated": bool(older)}
    report_list(output, body, versions, older_versions(older, _LIMIT) if older else "")


def _print(entries: list[LogEntry], older: int) -> None:
    table = Listing(_COLUMNS)
    now_ns = SystemClock().now_ns()
    for entry in entries:
        table.add(*_cells(entry, now_ns))
    console = stdout()
    console.print(table)
    if older:
        console.print(Text(older_versions(older, _LIMIT), style="dim"))


def _cells(entry: LogEntry, now_ns: int) -> list[Text]:
    number = Text(str(entry.version), style="bold")
    if entry.snapshot is None:
        damage = Text(f"damaged: {words.printable(entry.damage or '')}", style="red")
        return [number, *(Text() for _ in range(8)), damage]
    manifest = entry.snapshot.manifest
    written_ns = manifest.timestamp_ns
    when = "" if written_ns is None else words.age(written_ns, now_ns, is_short=True)
    operation = None if entry.transaction is None else entry.transaction.operation
    delta = entry.change
    return [
        number,
        Text(when, style="dim"),
        Text(operations.name(operation)),
        Text(words.number(live_rows(entry.snapshot))),
        _signed("+", delta.rows_added if delta else None),
        _signed("-", delta.rows_removed if delta else None),
        Text(words.number(len(manifest.fragments))),
        _signed("+", delta.fragments_added if delta else None),
        _signed("-", delta.fragments_removed if delta else None),
        _what(entry),
    ]


def _signed(sign: str, count: int | None) -> Text:
    return Text(f"{sign}{count:,}" if count else "", style="green" if sign == "+" else "red")


def _what(entry: LogEntry) -> Text:
    """Tags, the commit message, and details of the operation."""
    parts = [Text(f"[{words.printable(tag)}]", style="bold cyan") for tag in entry.tags]
    if entry.transaction is not None:
        if entry.transaction.message:
            parts.append(Text(words.printable(entry.transaction.message)))
        more = operations.details(entry.transaction.operation)
        if more:
            parts.append(Text(words.printable(more), style="dim"))
    return Text(" ").join(parts)
