"""Show the versions and their operations, newest first."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from lancelake.cli import phrases, report
from lancelake.cli.console import RowFormat
from lancelake.cli.options import CommandModule, RowOutput, Version
from lancelake.core.values.descriptions import details, log_document
from lancelake.core.values.versions import metrics_text, record_of, version_rows

if TYPE_CHECKING:
    from lancelake.core.values.descriptions import LogEntry

commands = CommandModule()

_COLUMNS = (
    report.right("version"),
    report.right("when"),
    report.TextColumn("operation"),
    *(report.right(name) for name in ("rows", "", "")),
    *(report.right(name, is_optional=True) for name in ("fragments", "", "")),
    report.cut("what"),
)

_LIMIT = "--limit"

Limit = Annotated[
    int, typer.Option(_LIMIT, "-n", min=0, help="Maximum number of versions; 0 for all.")
]


@commands.add(example="photos.lance -n 5")
def log(version: Version, limit: Limit = 20, output: RowOutput = RowFormat.TABLE) -> None:
    """Show the versions and their operations, newest first.

    With --at, the history of that version.
    """
    table = version.open()
    names = table.descriptions.versions()
    count = limit or len(names)
    entries = itertools.islice(table.descriptions.entries(names), count)
    older = max(0, len(names) - count)
    if output is RowFormat.TABLE:
        _print(list(entries), older, table.location.session.clock.now_ns())
        return
    versions = [log_document(entry) for entry in entries]
    body = {"uri": table.location.uri, "versions": versions, "truncated": bool(older)}
    report.report_list(
        output, body, versions, report.older_versions(older, _LIMIT) if older else ""
    )


def _print(entries: list[LogEntry], older: int, now_ns: int) -> None:
    listing = report.Listing(_COLUMNS)
    for entry in entries:
        listing.add(*_cells(entry, now_ns))
    report.print_listing(listing, report.older_versions(older, _LIMIT) if older else "")


def _cells(entry: LogEntry, now_ns: int) -> list[Text]:
    number = Text(str(entry.version), style="bold")
    if entry.snapshot is None:
        damage = Text(f"damaged: {phrases.printable(entry.damage or '')}", style="red")
        return [number, *(Text() for _ in range(8)), damage]
    manifest = entry.snapshot.manifest
    written_ns = manifest.timestamp_ns
    when = "" if written_ns is None else phrases.age(written_ns, now_ns, is_short=True)
    delta = entry.change
    return [
        number,
        Text(when, style="dim"),
        Text(phrases.printable(record_of(entry.transaction).name)),
        Text(phrases.number(version_rows(entry.snapshot))),
        _change_text("+", delta.rows_added if delta else None),
        _change_text("-", delta.rows_removed if delta else None),
        Text(phrases.number(len(manifest.fragments))),
        _change_text("+", delta.fragments_added if delta else None),
        _change_text("-", delta.fragments_removed if delta else None),
        _what(entry),
    ]


def _change_text(sign: str, count: int | None) -> Text:
    return Text(f"{sign}{count:,}" if count else "", style="green" if sign == "+" else "red")


def _what(entry: LogEntry) -> Text:
    """Tags, the commit message, and details of the operation."""
    parts = [Text(f"[{phrases.printable(tag)}]", style="bold cyan") for tag in entry.tags]
    if entry.transaction is not None:
        if entry.transaction.message:
            parts.append(Text(phrases.printable(entry.transaction.message)))
        more = details(entry.transaction.operation)
        metrics = metrics_text(record_of(entry.transaction).metrics)
        text = ", ".join(part for part in (more, metrics) if part)
        if text:
            parts.append(Text(phrases.printable(text), style="dim"))
    return Text(" ").join(parts)
