"""Rewrite small fragments into larger ones."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, job_bar
from lancelake.cli.options import Change, CommandModule, Output, column_names, flag, option
from lancelake.cli.report import report_version
from lancelake.core.values.reads import Ordering
from lancelake.core.values.reports import CompactionRun

if TYPE_CHECKING:
    from lancelake.core.values.metadata import Snapshot
    from lancelake.core.values.reports import Compacted, RewritePlan

commands = CommandModule()

DryRun = Annotated[bool, flag("--dry-run", "Only show what would be rewritten.")]
TargetRows = Annotated[
    int | None,
    option(
        "--target-rows",
        None,
        "Fragments with fewer rows are merged. By default from the table's config, or 1,048,576.",
        min=1,
    ),
]
TargetBytes = Annotated[
    int | None,
    option(
        "--target-bytes",
        None,
        "Fragments of this many bytes are not merged, even if they have few rows.",
        min=1,
    ),
]
Deleted = Annotated[
    float | None,
    option(
        "--deleted-share",
        None,
        "Fragments with a larger fraction of deleted rows are rewritten. By default 0.1.",
        min=0.0,
        max=1.0,
    ),
]
SortBy = Annotated[
    str | None,
    option(
        "--sort-by",
        "A,-B",
        "Sort all rows by these columns; every fragment is rewritten. -A for descending order.",
    ),
]
ZOrderBy = Annotated[
    str | None,
    option(
        "--z-order-by",
        "A,B",
        "Cluster rows along a Z-order curve through these columns; every fragment is rewritten.",
    ),
]
Threads = Annotated[
    int | None, option("--threads", None, "Number of parallel tasks. By default, all cores.", min=1)
]
GroupsPerCommit = Annotated[
    int | None,
    option(
        "--groups-per-commit",
        None,
        "Commit after this many groups, so that finished work is kept if a later group fails.",
        min=1,
    ),
]
Deferred = Annotated[
    bool,
    flag(
        "--defer-index-remap",
        "Record the moved row addresses instead of rewriting indices. Official Lance 4 "
        "misreads this record.",
    ),
]


@commands.add(example="photos.lance")
def compact_command(
    change: Change,
    dry_run: DryRun = False,
    target_rows: TargetRows = None,
    target_bytes: TargetBytes = None,
    deleted_share: Deleted = None,
    sort_by: SortBy = None,
    z_order_by: ZOrderBy = None,
    threads: Threads = None,
    groups_per_commit: GroupsPerCommit = None,
    defer_index_remap: Deferred = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Rewrite small fragments into larger ones, and remove deleted rows.

    Fragments that are large enough are not rewritten. Others may write at the same time: fragments
    they change in the meantime are compacted again.
    """
    clock = change.place.location.session.clock
    began = clock.monotonic_s()
    table = change.open()
    settings = table.maintenance.compaction_settings(
        target_rows_per_fragment=target_rows,
        target_bytes_per_fragment=target_bytes,
        materialize_deletions_threshold=deleted_share,
        sort_by=tuple(_ordering(key) for key in column_names(sort_by, "--sort-by") or ()),
        z_order_by=column_names(z_order_by, "--z-order-by"),
        num_threads=threads,
        defer_index_remap=defer_index_remap or None,
    )
    if dry_run:
        _report_plan(output, table.snapshot, table.maintenance.plan_compaction(settings))
        return
    with job_bar("group") as step:
        run = CompactionRun(
            choices=change.choices, progress=step, groups_per_commit=groups_per_commit
        )
        done = table.maintenance.compact(settings, run)
    _report(output, done, round((clock.monotonic_s() - began) * 1000))


def _ordering(key: str) -> Ordering:
    return Ordering(column=key.removeprefix("-"), ascending=not key.startswith("-"))


def _report_plan(output: OutputFormat, base: Snapshot, planned: RewritePlan) -> None:
    fragments = [fragment for group in planned.groups for fragment in group.fragments]
    size = sum(file.file_size_bytes or 0 for fragment in fragments for file in fragment.files)
    body = {
        "groups": [[fragment.id for fragment in group.fragments] for group in planned.groups],
        "fragments": len(fragments),
        "bytes": size,
    }
    read = f"{phrases.plural(len(fragments), 'fragment')}, {phrases.size(size)}"
    groups = phrases.plural(len(planned.groups), "group")
    report_version(output, base, body, [("to rewrite", f"{read}, in {groups}")])


def _report(output: OutputFormat, done: Compacted, milliseconds: int) -> None:
    metrics = done.metrics
    counts = {"groups_left": done.groups_left, "milliseconds": milliseconds}
    before = phrases.plural(metrics.fragments_removed, "fragment")
    after = phrases.plural(metrics.fragments_added, "fragment")
    rows = [
        ("before", Text(f"{before}, {phrases.size(metrics.bytes_removed)}")),
        ("after", Text(f"{after}, {phrases.size(metrics.bytes_added)}")),
        ("took", Text(phrases.duration(milliseconds))),
    ]
    if done.groups_left:
        left = phrases.plural(done.groups_left, "group")
        rows.append(("left", Text(f"{left} that other writers kept changing", style="yellow")))
    report_version(output, done.snapshot, {**asdict(metrics), **counts}, rows)
