"""`lancelake compact`: rewrite rows into fewer and larger files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_head
from lancelake.cli.console import OutputFormat, stderr
from lancelake.cli.options import (
    Branch,
    Message,
    Output,
    StorageOptions,
    Uri,
    column_names,
    location,
)
from lancelake.cli.report import report, version_body, version_rows
from lancelake.clock import SystemClock
from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import JobProgress
from lancelake.engine.port import Progress as JobStep
from lancelake.scan.request import Ordering
from lancelake.table.compact.clustering import table_settings
from lancelake.table.compact.plan import RewritePlan, plan
from lancelake.table.compact.run import Compacted, CompactionRun, compact
from lancelake.table.publish import CommitChoices

app = typer.Typer(add_completion=False, rich_markup_mode=None)

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be rewritten.")]
TargetRows = Annotated[
    int | None,
    typer.Option(
        "--target-rows",
        min=1,
        show_default=False,
        help="Fragments with fewer rows are merged. By default from the table's config, or "
        "1,048,576.",
    ),
]
TargetBytes = Annotated[
    int | None,
    typer.Option(
        "--target-bytes",
        min=1,
        show_default=False,
        help="Fragments of this many bytes are not merged, even if they have few rows.",
    ),
]
Deleted = Annotated[
    float | None,
    typer.Option(
        "--deleted-share",
        min=0.0,
        max=1.0,
        show_default=False,
        help="Fragments with a larger fraction of deleted rows are rewritten. By default 0.1.",
    ),
]
SortBy = Annotated[
    str | None,
    typer.Option(
        "--sort-by",
        metavar="A,-B",
        show_default=False,
        help="Sort all rows by these columns; every fragment is rewritten. -A for descending "
        "order.",
    ),
]
ZOrderBy = Annotated[
    str | None,
    typer.Option(
        "--z-order-by",
        metavar="A,B",
        show_default=False,
        help="Cluster rows along a Z-order curve through these columns; every fragment is "
        "rewritten.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        show_default=False,
        help="Number of parallel tasks. By default, all cores.",
    ),
]
GroupsPerCommit = Annotated[
    int | None,
    typer.Option(
        "--groups-per-commit",
        min=1,
        show_default=False,
        help="Commit after this many groups, so that finished work is kept if a later group fails.",
    ),
]
Deferred = Annotated[
    bool,
    typer.Option(
        "--defer-index-remap",
        help="Record the moved row addresses instead of rewriting indices. Official Lance 4 "
        "misreads this record.",
    ),
]


@app.command("compact")
def compact_command(
    uri: Uri,
    dry_run: DryRun = False,
    target_rows: TargetRows = None,
    target_bytes: TargetBytes = None,
    deleted_share: Deleted = None,
    sort_by: SortBy = None,
    z_order_by: ZOrderBy = None,
    threads: Threads = None,
    groups_per_commit: GroupsPerCommit = None,
    defer_index_remap: Deferred = False,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Rewrite small fragments into larger ones, and remove deleted rows.

    Fragments that are large enough are not rewritten. Others may write at the same time: fragments
    they change in the meantime are compacted again.
    """
    clock = SystemClock()
    began = clock.monotonic_s()
    base = open_head(location(uri, options), branch)
    chosen = table_settings(
        base,
        target_rows_per_fragment=target_rows,
        target_bytes_per_fragment=target_bytes,
        materialize_deletions_threshold=deleted_share,
        sort_by=tuple(_ordering(key) for key in column_names(sort_by, "--sort-by") or ()),
        z_order_by=column_names(z_order_by, "--z-order-by"),
        num_threads=threads,
        defer_index_remap=defer_index_remap or None,
    )
    if dry_run:
        _report_plan(output, base, plan(base, chosen))
        return
    with _watched() as step:
        run = CompactionRun(
            choices=CommitChoices(message=message),
            progress=step,
            groups_per_commit=groups_per_commit,
        )
        done = compact(base, chosen, run)
    _report(output, done, round((clock.monotonic_s() - began) * 1000))


def _ordering(key: str) -> Ordering:
    return Ordering(column=key.removeprefix("-"), ascending=not key.startswith("-"))


@contextmanager
def _watched() -> Iterator[JobStep | None]:
    """Show the progress on a terminal."""
    console = stderr()
    if not console.is_terminal:
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("")

        def step(progress: JobProgress) -> None:
            bar.update(task, completed=progress.done, total=progress.total)

        yield step


def _report_plan(output: OutputFormat, base: Snapshot, planned: RewritePlan) -> None:
    fragments = [fragment for group in planned.groups for fragment in group.fragments]
    size = sum(file.file_size_bytes or 0 for fragment in fragments for file in fragment.files)
    body = {
        **version_body(base),
        "groups": [[fragment.id for fragment in group.fragments] for group in planned.groups],
        "fragments": len(fragments),
        "bytes": size,
    }
    read = f"{words.plural(len(fragments), 'fragment')}, {words.size(size)}"
    groups = words.plural(len(planned.groups), "group")
    rows = [*version_rows(base), ("to rewrite", Text(f"{read}, in {groups}"))]
    report(output, body, rows)


def _report(output: OutputFormat, done: Compacted, milliseconds: int) -> None:
    metrics = done.metrics
    body = {
        **version_body(done.snapshot),
        **asdict(metrics),
        "groups_left": done.groups_left,
        "milliseconds": milliseconds,
    }
    before = words.plural(metrics.fragments_removed, "fragment")
    after = words.plural(metrics.fragments_added, "fragment")
    rows = [
        *version_rows(done.snapshot),
        ("before", Text(f"{before}, {words.size(metrics.bytes_removed)}")),
        ("after", Text(f"{after}, {words.size(metrics.bytes_added)}")),
        ("took", Text(words.duration(milliseconds))),
    ]
    if done.groups_left:
        left = words.plural(done.groups_left, "group")
        rows.append(("left", Text(f"{left} that other writers kept changing", style="yellow")))
    report(output, body, rows)
