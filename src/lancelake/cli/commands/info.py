"""Show a summary: size, versions, columns, indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import CommandModule, Output, Version
from lancelake.cli.report import Listing, TextColumn, cut, facts, right, target_text
from lancelake.cli.rows import tree, type_text
from lancelake.core.values.descriptions import writer_text

if TYPE_CHECKING:
    from lancelake.core.values.descriptions import IndexSummary, TableSummary
    from lancelake.core.values.metadata import Snapshot

commands = CommandModule()

_MOST_FIELDS = 20
_MOST_REFS = 10


@commands.add(example="photos.lance")
def info(version: Version, output: Output = OutputFormat.TABLE) -> None:
    """Show a summary: size, versions, columns, indices, maintenance advice."""
    table = version.open()
    snapshot = table.snapshot
    summary = table.descriptions.summary()
    rows = table.count_rows() if summary.rows is None else summary.rows
    if output is OutputFormat.JSON:
        print_json(table.descriptions.summary_document(summary, rows))
        return
    console = stdout()
    console.print(facts(_facts(snapshot, summary, rows)))
    _print_columns(console, snapshot)
    _print_indices(console, summary.indices)
    for warning in summary.warnings:
        console.print()
        console.print(Text.assemble(("! ", "bold yellow"), phrases.printable(warning.message)))
        console.print(Text(f"  {phrases.printable(warning.advice)}", style="dim"))


def _facts(snapshot: Snapshot, summary: TableSummary, rows: int) -> Iterator[tuple[str, Text]]:
    manifest = snapshot.manifest
    counts = summary.counts
    yield "table", Text(phrases.printable(summary.uri), style="bold")
    yield "version", _version(summary)
    yield "written", _time_text(snapshot)
    deleted = f"  {phrases.number(summary.deleted_rows)} deleted" if summary.deleted_rows else ""
    yield "rows", Text.assemble(phrases.number(rows), (deleted, "dim"))
    yield "size", _size(summary)
    files = phrases.plural(counts.total_data_files, "data file")
    files += f", format {manifest.data_version.value}"
    yield "fragments", Text.assemble(phrases.number(counts.total_fragments), (f"  {files}", "dim"))
    yield "row ids", Text("stable" if manifest.has_stable_row_ids else "by address")
    yield from _names(
        "tags", [f"{n} → {target_text(t.branch, t.version)}" for n, t in summary.tags]
    )
    forks = [
        f"{n} from {target_text(b.parent_branch or 'main', b.parent_version)}"
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
        text.append(f"  on branch {phrases.printable(summary.branch)}", style="cyan")
    return text.append(f"  {phrases.plural(summary.versions, 'version')} kept", style="dim")


def _time_text(snapshot: Snapshot) -> Text:
    manifest = snapshot.manifest
    text = Text("unknown", style="dim")
    if manifest.timestamp is not None and manifest.timestamp_ns is not None:
        ago = phrases.age(manifest.timestamp_ns, snapshot.location.session.clock.now_ns())
        text = Text.assemble(ago, (f"  {phrases.moment(manifest.timestamp)}", "dim"))
    writer = writer_text(manifest.writer_version)
    return text.append(f"  by {phrases.printable(writer)}", style="dim") if writer else text


def _size(summary: TableSummary) -> Text:
    text = Text(phrases.size(summary.data_bytes))
    if summary.unsized_files:
        missing = phrases.plural(summary.unsized_files, "file")
        text.append(f"  and {missing} of unknown size", style="yellow")
    index_bytes = sum(index.size_bytes or 0 for index in summary.indices)
    if index_bytes:
        text.append(f"  and {phrases.size(index_bytes)} of indices", style="dim")
    return text


def _names(label: str, names: list[str]) -> Iterator[tuple[str, Text]]:
    if not names:
        return
    first = ", ".join(phrases.shorten(phrases.printable(name), 60) for name in names[:_MOST_REFS])
    more = f" and {len(names) - _MOST_REFS} more" if len(names) > _MOST_REFS else ""
    yield label, Text.assemble(first, (more, "dim"))


def _print_columns(console: Console, snapshot: Snapshot) -> None:
    rows = list(tree(snapshot.manifest.schema))
    listing = Listing([cut("column"), cut("type"), TextColumn("")])
    for field, name in rows[:_MOST_FIELDS]:
        key = Text("primary key", "cyan") if field.unenforced_primary_key else Text()
        notes = key if field.nullable else Text("not null ", "dim") + key
        listing.add(Text(name), Text(type_text(field), "green"), notes)
    console.print()
    console.print(listing)
    if len(rows) > _MOST_FIELDS:
        left = phrases.plural(len(rows) - _MOST_FIELDS, "more field")
        console.print(Text(f"… {left}: lancelake schema", style="dim"))


def _print_indices(console: Console, indices: tuple[IndexSummary, ...]) -> None:
    if not indices:
        return
    listing = Listing(
        [cut("index"), TextColumn("kind"), cut("columns"), right("rows covered"), right("size")]
    )
    for index in indices:
        covered = phrases.number(index.indexed_rows)
        if index.indexed_rows is not None and index.unindexed_rows:
            covered += f" of {index.indexed_rows + index.unindexed_rows:,}"
        size = "?" if index.size_bytes is None else phrases.size(index.size_bytes)
        columns = ", ".join(index.columns)
        texts = phrases.printable(index.name), index.kind, phrases.printable(columns)
        listing.add(*texts, covered, size)
    console.print()
    console.print(listing)
