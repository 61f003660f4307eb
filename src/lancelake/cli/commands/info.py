"""`lancelake info`: show a summary of a table."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from rich.console import Console
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import At, Output, StorageOptions, Uri, location
from lancelake.cli.schema_text import tree, type_text
from lancelake.cli.tables import Listing, TextColumn, cut, facts, right
from lancelake.clock import SystemClock
from lancelake.commit.snapshot import Snapshot
from lancelake.table.describe.documents import writer_text
from lancelake.table.describe.summary import (
    IndexSummary,
    TableSummary,
    describe,
    exact_rows,
    summary_document,
)

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_MOST_FIELDS = 20
_MOST_REFS = 10


@app.command()
def info(
    uri: Uri, at: At = None, options: StorageOptions = None, output: Output = OutputFormat.TABLE
) -> None:
    """Show a summary: size, versions, columns, indices, maintenance advice."""
    snapshot = open_at(location(uri, options), at)
    summary = describe(snapshot)
    rows = exact_rows(snapshot, summary)
    if output is OutputFormat.JSON:
        print_json(summary_document(snapshot, summary, rows))
        return
    console = stdout()
    console.print(facts(_facts(snapshot, summary, rows)))
    _print_columns(console, snapshot)
    _print_indices(console, summary.indices)
    for warning in summary.warnings:
        console.print()
        console.print(Text.assemble(("! ", "bold yellow"), words.printable(warning.message)))
        console.print(Text(f"  {words.printable(warning.advice)}", style="dim"))


def _facts(snapshot: Snapshot, summary: TableSummary, rows: int) -> Iterator[tuple[str, Text]]:
    manifest = snapshot.manifest
    counts = summary.counts
    yield "table", Text(words.printable(summary.uri), style="bold")
    yield "version", _version(summary)
    yield "written", _written(snapshot)
    deleted = f"  {words.number(summary.deleted_rows)} deleted" if summary.deleted_rows else ""
    yield "rows", Text.assemble(words.number(rows), (deleted, "dim"))
    yield "size", _size(summary)
    files = words.plural(counts.total_data_files, "data file")
    files += f", format {manifest.data_version.value}"
    yield "fragments", Text.assemble(words.number(counts.total_fragments), (f"  {files}", "dim"))
    yield "row ids", Text("stable" if manifest.has_stable_row_ids else "by address")
    yield from _names("tags", [f"{n} → {_target(t.branch, t.version)}" for n, t in summary.tags])
    forks = [
        f"{n} from {_target(b.parent_branch or 'main', b.parent_version)}"
        for n, b in summary.branches
    ]
    yield from _names("branches", forks)
    yield from _names("config", [f"{k}={v}" for k, v in sorted(manifest.config.items())])
    yield from _names("metadata", sorted([*manifest.table_metadata, *manifest.schema.metadata]))
    yield from _names("bases", [f"{b.id}: {b.path}" for b in manifest.base_paths])


def _version(summary: TableSummary) -> Text:
    text = Text(str(summary.version))
    if summary.version != summary.latest_version:
        text.append(f"  latest is {summary.latest_version}", style="yellow")
    if summary.branch is not None:
        text.append(f"  on branch {words.printable(summary.branch)}", style="cyan")
    return text.append(f"  {words.plural(summary.versions, 'version')} kept", style="dim")


def _written(snapshot: Snapshot) -> Text:
    manifest = snapshot.manifest
    text = Text("unknown", style="dim")
    if manifest.timestamp is not None and manifest.timestamp_ns is not None:
        ago = words.age(manifest.timestamp_ns, SystemClock().now_ns())
        text = Text.assemble(ago, (f"  {words.moment(manifest.timestamp)}", "dim"))
    writer = writer_text(manifest.writer_version)
    return text.append(f"  by {words.printable(writer)}", style="dim") if writer else text


def _size(summary: TableSummary) -> Text:
    text = Text(words.size(summary.data_bytes))
    if summary.unsized_files:
        missing = words.plural(summary.unsized_files, "file")
        text.append(f"  and {missing} of unknown size", style="yellow")
    index_bytes = sum(index.size_bytes or 0 for index in summary.indices)
    if index_bytes:
        text.append(f"  and {words.size(index_bytes)} of indices", style="dim")
    return text


def _names(label: str, names: list[str]) -> Iterator[tuple[str, Text]]:
    if not names:
        return
    shown = ", ".join(words.shortened(words.printable(name), 60) for name in names[:_MOST_REFS])
    more = f" and {len(names) - _MOST_REFS} more" if len(names) > _MOST_REFS else ""
    yield label, Text.assemble(shown, (more, "dim"))


def _target(branch: str | None, version: int) -> str:
    return f"{branch}:{version}" if branch else str(version)


def _print_columns(console: Console, snapshot: Snapshot) -> None:
    rows = list(tree(snapshot.manifest.schema))
    table = Listing([cut("column"), cut("type"), TextColumn("")])
    for field, name in rows[:_MOST_FIELDS]:
        key = Text("primary key", "cyan") if field.unenforced_primary_key else Text()
        notes = key if field.nullable else Text("not null ", "dim") + key
        table.add(Text(name), Text(type_text(field), "green"), notes)
    console.print()
    console.print(table)
    if len(rows) > _MOST_FIELDS:
        left = words.plural(len(rows) - _MOST_FIELDS, "more field")
        console.print(Text(f"… {left}: lancelake schema", style="dim"))


def _print_indices(console: Console, indices: tuple[IndexSummary, ...]) -> None:
    if not indices:
        return
    table = Listing(
        [cut("index"), TextColumn("kind"), cut("columns"), right("rows covered"), right("size")]
    )
    for index in indices:
        covered = words.number(index.indexed_rows)
        if index.indexed_rows is not None and index.unindexed_rows:
            covered += f" of {index.indexed_rows + index.unindexed_rows:,}"
        size = "?" if index.size_bytes is None else words.size(index.size_bytes)
        columns = ", ".join(index.columns)
        table.add(words.printable(index.name), index.kind, words.printable(columns), covered, size)
    console.print()
    console.print(table)
