"""Set up, show, merge and clean up the MemWAL, a log of upserts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import typer
from rich.text import Text

from lancelake.cli import options, phrases, report
from lancelake.cli.console import OutputFormat, RowFormat, print_json
from lancelake.cli.rows import print_stream
from lancelake.core.table import Table
from lancelake.core.values.metadata import public_schema
from lancelake.core.values.wal import TOMBSTONE, RowShape, list_regions

if TYPE_CHECKING:
    from lancelake.core.values.wal import Collected, MergedRegions, RegionStatus, TailEntry

commands = options.CommandModule(
    "Set up, show, merge and clean up the MemWAL, a log of upserts.",
    example="init photos.lance --key id",
)

_TAIL = pa.schema([("region", pa.string()), ("position", pa.int64()), ("change", pa.string())])

Flush = Annotated[
    bool,
    options.flag(
        "--flush",
        "Flush the logs first, so that all rows are merged. This fences the writers of "
        "their regions.",
    ),
]
RegionIds = Annotated[list[uuid.UUID] | None, options.option("--region", "ID", "Only this region.")]
Buckets = Annotated[
    int,
    typer.Option(
        "--buckets",
        help="Number of regions; rows are assigned by the hash of the first key column.",
    ),
]
Key = Annotated[
    str | None,
    options.option("--key", "A,B", "Primary key to declare. By default, that of the table."),
]
OlderThan = Annotated[
    str | None,
    options.option(
        "--older-than",
        "AGE",
        "Remove files of rows that were merged longer ago than this, such as 2days, 12h or "
        "0s. By default 1day.",
    ),
]
DryRun = Annotated[bool, options.flag("--dry-run", "Only show what would be removed.")]
After = Annotated[
    int | None,
    options.option(
        "--after",
        "POSITION",
        "Entries after this position. By default, those that are not flushed.",
        min=0,
    ),
]


@commands.add("init", example="photos.lance --key id")
def init_command(
    change: options.Change,
    buckets: Buckets = 8,
    key: Key = None,
    output: options.Output = OutputFormat.TABLE,
) -> None:
    """Add a MemWAL to a table, for durable upserts with low latency."""
    names = options.column_names(key, "--key")
    done = change.open().wal.set_up(buckets=buckets, key=names, choices=change.choices)
    report.report_version(output, done)


@commands.add("status", example="users.lance")
def status_command(head: options.Head, output: options.Output = OutputFormat.TABLE) -> None:
    """Show the regions, and how many of their rows are not merged."""
    table = head.open()
    status = table.wal.status()
    if output is OutputFormat.JSON:
        body = {
            "num_regions": status.details.num_regions,
            "regions": [_region_body(each) for each in status.regions],
        }
        print_json({**report.version_body(table.snapshot), **body})
        return
    numbers = map(report.right, ("epoch", "merged", "unmerged", "flushed rows", "log rows"))
    listing = report.Listing([report.TextColumn("region"), *numbers, report.TextColumn("state")])
    for each in status.regions:
        listing.add(
            str(each.region),
            str(each.manifest.writer_epoch),
            str(each.merged_generation),
            str(len(each.unmerged)),
            phrases.number(each.flushed_rows),
            phrases.number(each.tail_rows),
            "active" if each.manifest.is_active else "sealed",
        )
    report.print_listing(listing, phrases.plural(len(status.regions), "region"))


@commands.add("merge", example="users.lance --flush")
def merge_command(
    change: options.Change,
    flush: Flush = False,
    region: RegionIds = None,
    output: options.Output = OutputFormat.TABLE,
) -> None:
    """Merge flushed rows into the table with one commit."""
    table = change.open()
    if flush:
        table.wal.flush_tails(region)
    done = table.wal.merge(region, choices=change.choices)
    report.report_version(output, done.snapshot, _merge_body(done), _merge_rows(done))


@commands.add("gc", example="users.lance --dry-run")
def collect_command(
    head: options.Head,
    older_than: OlderThan = None,
    dry_run: DryRun = False,
    output: options.Output = OutputFormat.TABLE,
) -> None:
    """Remove merged generations, and log entries that are flushed."""
    table = head.open()
    limit = None if older_than is None else options.age(older_than, "'--older-than'")
    done = table.wal.collect_garbage(older_than=limit, dry_run=dry_run)
    if not done.regions:
        table.wal.status()  # raises for a table that has no MemWAL, and no files of an ended one
    report.report_version(output, table.snapshot, _collect_body(done), _collect_rows(done))


@commands.add("tail", example="users.lance")
def tail_command(
    head: options.Head,
    region: RegionIds = None,
    after: After = None,
    rows: options.MaxRows = None,
    output: options.RowOutput = RowFormat.TABLE,
) -> None:
    """Show the rows of log entries that are not flushed, region by region."""
    table = head.open()
    table.wal.status()
    # Tombstones have nothing but the key.
    columns = [f.with_nullable(True) for f in public_schema(RowShape.of(table.snapshot).table)]
    schema = pa.schema([*_TAIL, *columns])
    regions = list_regions(table.location) if region is None else region
    print_stream(_entries(table, regions, after, schema), schema, table.snapshot, output, rows)


def _entries(
    table: Table, regions: Sequence[uuid.UUID], after: int | None, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for region in regions:
        for entry in table.wal.read_entries(region, after):
            yield from _changes(region, entry, schema)


def _changes(region: uuid.UUID, entry: TailEntry, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in entry.rows.combine_chunks().to_batches():
        marks = batch.column(TOMBSTONE).to_pylist()
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([str(region)] * batch.num_rows),
                pa.array([entry.position] * batch.num_rows, pa.int64()),
                pa.array(["delete" if gone else "upsert" for gone in marks]),
                *(batch.column(field.name) for field in list(schema)[len(_TAIL) :]),
            ],
            schema=schema,
        )


def _region_body(each: RegionStatus) -> dict[str, Any]:  # JSON
    return {
        **each.facts(),
        "manifest_version": each.manifest.version,
        "unmerged_generations": [g.generation for g in each.unmerged],
    }


def _merge_body(done: MergedRegions) -> dict[str, Any]:  # JSON
    return {
        "merged": {str(mark.region_id): mark.generation for mark in done.marks},
        "rows_inserted": done.counts.inserted,
        "rows_updated": done.counts.updated,
        "rows_deleted": done.counts.deleted,
    }


def _merge_rows(done: MergedRegions) -> Iterator[tuple[str, Text | str]]:
    if not done.marks:
        yield "", Text("nothing to merge", style="green")
        return
    yield "merged", phrases.plural(len(done.marks), "region")
    yield "inserted", phrases.plural(done.counts.inserted, "row")
    yield "updated", phrases.plural(done.counts.updated, "row")
    yield "deleted", phrases.plural(done.counts.deleted, "row")


def _collect_body(done: Collected) -> dict[str, Any]:  # JSON
    return {
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


def _collect_rows(done: Collected) -> Iterator[tuple[str, Text | str]]:
    generations = sum(len(each.trimmed) for each in done.regions)
    removed = "would remove" if done.is_dry_run else "removed"
    files = phrases.plural(len(done.files), "file")
    count = phrases.plural(generations, "generation")
    yield removed, f"{count}, {files}, {phrases.size(done.size_bytes)}"
