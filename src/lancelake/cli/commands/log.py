"""`lancelake log`: show the version history of a table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from lancelake.cli import operation_text, words
from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.documents import document, writer_text
from lancelake.cli.options import At, Output, StorageOptions, Uri, location
from lancelake.cli.tables import Listing, TextColumn, cut, right
from lancelake.clock import SystemClock
from lancelake.commit.versions import list_versions
from lancelake.errors import LanceTableError
from lancelake.format.names import ManifestName
from lancelake.format.operations import Clone
from lancelake.format.transaction import Transaction
from lancelake.table.check.refs import CheckedRefs
from lancelake.table.history import summarize
from lancelake.table.snapshot import Snapshot
from lancelake.table.version_delta import VersionDelta, change, live_rows

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_THREADS = 8
_COLUMNS = (
    right("version"),
    right("when"),
    TextColumn("operation"),
    *(right(name) for name in ("rows", "", "")),
    *(right(name, is_optional=True) for name in ("fragments", "", "")),
    cut("what"),
)

Limit = Annotated[
    int, typer.Option("--limit", "-n", min=0, help="Maximum number of versions; 0 for all.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """A version in the log; without a snapshot if its manifest cannot be read."""

    version: int
    snapshot: Snapshot | None = None
    transaction: Transaction | None = None
    change: VersionDelta | None = None
    damage: str | None = None
    tags: tuple[str, ...] = ()


@app.command()
def log(
    uri: Uri,
    at: At = None,
    limit: Limit = 20,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show the versions and their operations, newest first.

    With --at, the history of that version.
    """
    newest = open_at(location(uri, options), at)
    names = [n for n in reversed(list_versions(newest.location)) if n.version <= newest.version]
    count = limit or len(names)
    entries = itertools.islice(_entries(newest, names), count)
    if output is OutputFormat.JSON:
        print_json({"uri": newest.location.uri, "versions": [_document(e) for e in entries]})
        return
    _print(list(entries), older=max(0, len(names) - count))


def _entries(newest: Snapshot, names: list[ManifestName]) -> Iterator[LogEntry]:
    """Yield versions newest first, each compared with the one before it."""
    tags = CheckedRefs.load(newest.main_location).tags
    tagged: dict[int, list[str]] = {}
    for label, tag in tags.items():
        if (tag.branch if tag.branch != "main" else None) == newest.branch:
            tagged.setdefault(tag.version, []).append(label)
    pairs = itertools.pairwise(itertools.chain(_snapshots(newest, names), [None]))
    for name, (found, before) in zip(names, pairs, strict=False):
        labels = tuple(sorted(tagged.get(name.version, ())))
        if isinstance(found, Snapshot):
            yield _entry(found, before, labels)
        elif found is not None:
            yield LogEntry(version=name.version, damage=found.problem, tags=labels)


def _snapshots(newest: Snapshot, names: list[ManifestName]) -> Iterator[Snapshot | LanceTableError]:
    """Load versions a few at a time."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for start in range(0, len(names), _THREADS):
            yield from pool.map(partial(_loaded, newest), names[start : start + _THREADS])


def _loaded(newest: Snapshot, name: ManifestName) -> Snapshot | LanceTableError:
    try:
        return Snapshot.load(newest.location, name)
    except LanceTableError as error:
        return error


def _entry(
    found: Snapshot, before: Snapshot | LanceTableError | None, tags: tuple[str, ...]
) -> LogEntry:
    transaction = _transaction(found)
    operation = None if transaction is None else transaction.operation
    is_first = found.version == 1 or isinstance(operation, Clone)
    difference = None
    if is_first:
        difference = change(None, found, operation)
    elif isinstance(before, Snapshot) and before.version == found.version - 1:
        difference = change(before, found, operation)
    return LogEntry(
        version=found.version,
        snapshot=found,
        transaction=transaction,
        change=difference,
        tags=tags,
    )


def _transaction(snapshot: Snapshot) -> Transaction | None:
    try:
        return snapshot.transaction
    except LanceTableError:
        return None


def _print(entries: list[LogEntry], *, older: int) -> None:
    table = Listing(_COLUMNS)
    now_ns = SystemClock().now_ns()
    for entry in entries:
        table.add(*_cells(entry, now_ns))
    console = stdout()
    console.print(table)
    if older:
        text = f"… {words.plural(older, 'older version')}: --limit 0 shows all"
        console.print(Text(text, style="dim"))


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
        Text(operation_text.name(operation)),
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
        more = operation_text.details(entry.transaction.operation)
        if more:
            parts.append(Text(words.printable(more), style="dim"))
    return Text(" ").join(parts)


def _document(entry: LogEntry) -> dict[str, Any]:  # JSON
    snapshot, transaction = entry.snapshot, entry.transaction
    if snapshot is None:
        return {"version": entry.version, "damage": entry.damage, "tags": list(entry.tags)}
    manifest = snapshot.manifest
    operation = None if transaction is None else transaction.operation
    counts = summarize(snapshot)
    return {
        "version": entry.version,
        "damage": None,
        "tags": list(entry.tags),
        "written_at": manifest.timestamp.isoformat() if manifest.timestamp else None,
        "writer": writer_text(manifest.writer_version),
        "operation": None if operation is None else operation_text.name(operation),
        "details": None if operation is None else operation_text.details(operation),
        "message": None if transaction is None else transaction.message,
        "properties": {} if transaction is None else document(transaction.properties),
        "read_version": None if transaction is None else transaction.read_version,
        "rows": live_rows(snapshot),
        "fragments": counts.total_fragments,
        "data_files": counts.total_data_files,
        "data_bytes": counts.total_files_size,
        "change": document(entry.change),
    }
