"""Compact, refresh indices and clean up, if worthwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, job_bar
from lancelake.cli.options import Change, CommandModule, Output, flag
from lancelake.cli.report import report_version
from lancelake.core.values.reports import OptimizeRun, optimize_document

if TYPE_CHECKING:
    from lancelake.core.values.reports import OptimizeSummary

commands = CommandModule()

DryRun = Annotated[bool, flag("--dry-run", "Only show what would be done.")]


@commands.add(example="photos.lance")
def optimize_command(
    change: Change, dry_run: DryRun = False, output: Output = OutputFormat.TABLE
) -> None:
    """Compact, refresh indices and clean up, if worthwhile.

    Thresholds are read from the table's config: `lancelake.optimize.*`, `lance.compaction.*` and
    `lance.auto_cleanup.*`. Without pending work no version is created. It can run at any time,
    concurrently with writers and with itself.
    """
    table = change.open()
    with job_bar("task") as step:
        run = OptimizeRun(choices=change.choices, progress=step)
        summary = table.maintenance.optimize(dry_run=dry_run, run=run)
    report_version(output, summary.snapshot, optimize_document(summary), _rows(summary))


def _rows(summary: OptimizeSummary) -> Iterator[tuple[str, Text]]:
    would = "would be " if summary.is_dry_run else ""
    if summary.compaction is not None:
        before = phrases.plural(summary.compaction.fragments_removed, "fragment")
        after = phrases.plural(summary.compaction.fragments_added, "fragment")
        yield "compacted", Text(f"{before} {would}rewritten as {after}")
    for what in summary.indices:
        yield "indices", Text(phrases.printable(what))
    if summary.cleanup is not None:
        yield "cleaned up", _cleanup_text(summary, would)
    for reason in summary.skipped:
        yield "skipped", Text(phrases.printable(reason), style="dim")
    if summary.conflict is not None:
        yield (
            "conflict",
            Text(f"{phrases.printable(summary.conflict)}; retry later", style="yellow"),
        )
    if not summary.has_work:
        yield "", Text("nothing to do", style="green")


def _cleanup_text(summary: OptimizeSummary, would: str) -> Text:
    assert summary.cleanup is not None
    cleanup = summary.cleanup
    if not cleanup.versions and not cleanup.files_removed:
        return Text("no version is old enough", style="dim")
    versions = phrases.plural(len(cleanup.versions), "version")
    files = phrases.plural(cleanup.files_removed, "file")
    return Text(f"{versions}, {files}, {phrases.size(cleanup.bytes_removed)} {would}removed")
