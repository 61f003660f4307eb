"""`lancelake wal`: the MemWAL of a table, its state, merges, garbage and entries."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_head
from lancelake.cli.console import OutputFormat, RowFormat, print_json, stdout
from lancelake.cli.options import (
    Branch,
    MaxRows,
    Message,
    Output,
    RowOutput,
    StorageOptions,
    Uri,
    age,
    column_names,
    location,
    subcommands,
)
from lancelake.cli.report import report, version_body, version_rows
from lancelake.cli.row_view import print_stream
from lancelake.cli.tables import Listing, TextColumn, right
from lancelake.commit.snapshot import Snapshot
from lancelake.format.arrow_schema import public_schema
from lancelake.memwal.collect import Collected, collect_garbage
from lancelake.memwal.merge import MergedRegions, merge_generations
from lancelake.memwal.region_files import list_regions
from lancelake.memwal.setup import set_up
from lancelake.memwal.shape import TOMBSTONE, RowShape
from lancelake.memwal.status import RegionStatus, WalStatus, wal_status
from lancelake.memwal.tail import TailEntry, read_entries
from lancelake.memwal.take_over import flush_tails
from lancelake.table.publish import CommitChoices

app = subcommands("Set up, show, merge and clean up the MemWAL, a log of upserts.")

_TAIL = pa.schema([("region", pa.string()), ("position", pa.int64()), ("change", pa.string())])

Flush = Annotated[
    bool,
    typer.Option(
        "--flush",
        help="Flush the logs first, so that all rows are merged. This fences the writers of "
        "their regions.",
    ),
]
RegionIds = Annotated[
    list[uuid.UUID] | None,
    typer.Option("--region", metavar="ID", show_default=False, help="Only this region."),
]
Buckets = Annotated[
    int,
    typer.Option(
        "--buckets",
        help="Number of regions; rows are assigned by the hash of the first key column.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="A,B",
        show_default=False,
        help="Primary key to declare. By default, that of the table.",
    ),
]
OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="AGE",
        show_default=False,
        help="Remove files of rows that were merged longer ago than this, such as 2days, 12h or "
        "0s. By default 1day.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")]
After = Annotated[
    int | None,
    typer.Option(
        "--after",
        metavar="POSITION",
        min=0,
        show_default=False,
        help="Entries after this position. By default, those that are not flushed.",
    ),
]


@app.command("init")
def init_command(
    uri: Uri,
    buckets: Buckets = 8,
    key: Key = None,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Add a MemWAL to a table, for durable upserts with low latency."""
    base = open_head(location(uri, options), branch)
    names = column_names(key, "--key")
    made = set_up(base, buckets=buckets, key=names, choices=CommitChoices(message=message))
    report(output, version_body(made), version_rows(made))


@app.command("status")
def status_command(
    uri: Uri,
    branch: Branch = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show the regions, and how many of their rows are not merged."""
    base = open_head(location(uri, options), branch)
    found = wal_status(base)
    if output is OutputFormat.JSON:
        print_json({**version_body(base), **_status_body(found)})
        return
    table = Listing(
        [
            TextColumn("region"),
            right("epoch"),
            right("merged"),
            right("unmerged"),
            right("flushed rows"),
            right("log rows"),
            TextColumn("state"),
        ]
    )
    for each in found.regions:
        table.add(
            str(each.region),
            str(each.manifest.writer_epoch),
            str(each.merged_generation),
            str(len(each.unmerged)),
            words.number(each.flushed_rows),
            words.number(each.tail_rows),
            "active" if each.manifest.is_active else "sealed",
        )
    console = stdout()
    console.print(table)
    console.print(Text(words.plural(len(found.regions), "region"), style="dim"))


@app.command("merge")
def merge_command(
    uri: Uri,
    flush: Flush = False,
    region: RegionIds = None,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Merge flushed rows into the table with one commit."""
    base = open_head(location(uri, options), branch)
    if flush:
        flush_tails(base, region)
    done = merge_generations(base, region, choices=CommitChoices(message=message))
    report(output, _merge_body(done), _merge_rows(done))


@app.command("gc")
def collect_command(
    uri: Uri,
    older_than: OlderThan = None,
    dry_run: DryRun = False,
    branch: Branch = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Remove merged generations, and log entries that are flushed."""
    base = open_head(location(uri, options), branch)
    limit = None if older_than is None else age(older_than, "'--older-than'")
    done = collect_garbage(base, older_than=limit, dry_run=dry_run)
    if not done.regions:
        wal_status(base)  # raises for a table that has no MemWAL, and no files of an ended one
    report(output, _collect_body(base, done), _collect_rows(base, done))


@app.command("tail")
def tail_command(
    uri: Uri,
    region: RegionIds = None,
    after: After = None,
    rows: MaxRows = None,
    branch: Branch = None,
    options: StorageOptions = None,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """Show the rows of log entries that are not flushed, region by region."""
    base = open_head(location(uri, options), branch)
    wal_status(base)
    # Tombstones have nothing but the key.
    own = [f.with_nullable(True) for f in public_schema(RowShape.of(base).table)]
    shown = pa.schema([*_TAIL, *own])
    regions = list_regions(base.location) if region is None else region
    print_stream(_entries(base, regions, after, shown), shown, base, output, rows)


def _entries(
    base: Snapshot, regions: Sequence[uuid.UUID], after: int | None, shown: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for region in regions:
        for entry in read_entries(base, region, after):
            yield from _changes(region, entry, shown)


def _changes(region: uuid.UUID, entry: TailEntry, shown: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in entry.rows.combine_chunks().to_batches():
        marks = batch.column(TOMBSTONE).to_pylist()
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([str(region)] * batch.num_rows),
                pa.array([entry.position] * batch.num_rows, pa.int64()),
                pa.array(["delete" if gone else "upsert" for gone in marks]),
                *(batch.column(field.name) for field in list(shown)[len(_TAIL) :]),
            ],
            schema=shown,
        )


def _status_body(found: WalStatus) -> dict[str, Any]:  # JSON
    return {
        "num_regions": found.details.num_regions,
        "regions": [_region_body(each) for each in found.regions],
    }


def _region_body(each: RegionStatus) -> dict[str, Any]:  # JSON
    return {
        **each.facts(),
        "manifest_version": each.manifest.version,
        "unmerged_generations": [g.generation for g in each.unmerged],
    }


def _merge_body(done: MergedRegions) -> dict[str, Any]:  # JSON
    return {
        **version_body(done.snapshot),
        "merged": {str(mark.region_id): mark.generation for mark in done.marks},
        "rows_inserted": done.counts.inserted,
        "rows_updated": done.counts.updated,
        "rows_deleted": done.counts.deleted,
    }


def _merge_rows(done: MergedRegions) -> Iterator[tuple[str, Text | str]]:
    yield from version_rows(done.snapshot)
    if not done.marks:
        yield "", Text("nothing to merge", style="green")
        return
    yield "merged", words.plural(len(done.marks), "region")
    yield "inserted", words.plural(done.counts.inserted, "row")
    yield "updated", words.plural(done.counts.updated, "row")
    yield "deleted", words.plural(done.counts.deleted, "row")


def _collect_body(base: Snapshot, done: Collected) -> dict[str, Any]:  # JSON
    return {
        **version_body(base),
        "dry_run": done.is_dry_run,
        "bytes": done.size_bytes,
        "regions": [
            {
                "region": str(each.region),
                "generations": list(each.trimmed),
                "files": [{"path": f.path, "bytes": f.size_bytes} for f in each.files],
            }
            for each in done.regions
        ],
    }


def _collect_rows(base: Snapshot, done: Collected) -> Iterator[tuple[str, Text | str]]:
    yield from version_rows(base)
    generations = sum(len(each.trimmed) for each in done.regions)
    removed = "would remove" if done.is_dry_run else "removed"
    files = words.plural(len(done.files), "file")
    count = words.plural(generations, "generation")
    yield removed, f"{count}, {files}, {words.size(done.size_bytes)}"
