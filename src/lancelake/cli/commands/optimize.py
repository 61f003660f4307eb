"""`lancelake optimize`: compact and clean up a table if worthwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_head
from lancelake.cli.console import OutputFormat
from lancelake.cli.job_bar import job_bar
from lancelake.cli.options import Branch, Message, Output, StorageOptions, Uri, location
from lancelake.cli.report import report, version_body, version_rows
from lancelake.table.describe.maintenance import optimize_document
from lancelake.table.optimize import OptimizeRun, OptimizeSummary, optimize
from lancelake.table.publish import CommitChoices

app = typer.Typer(add_completion=False, rich_markup_mode=None)

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


@app.command("optimize")
def optimize_command(
    uri: Uri,
    dry_run: DryRun = False,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Compact, refresh indices and clean up, if worthwhile.

    Thresholds are read from the table's config: `lancelake.optimize.*`, `lance.compaction.*` and
    `lance.auto_cleanup.*`. Without pending work no version is created. It can run at any time,
    concurrently with writers and with itself.
    """
    base = open_head(location(uri, options), branch)
    with job_bar("task") as step:
        run = OptimizeRun(choices=CommitChoices(message=message), progress=step)
        summary = optimize(base, dry_run=dry_run, run=run)
    document = {**version_body(summary.snapshot), **optimize_document(summary)}
    report(output, document, _rows(summary))


def _rows(summary: OptimizeSummary) -> Iterator[tuple[str, Text]]:
    yield from version_rows(summary.snapshot)
    would = "would be " if summary.is_dry_run else ""
    if summary.compaction is not None:
        before = words.plural(summary.compaction.fragments_removed, "fragment")
        after = words.plural(summary.compaction.fragments_added, "fragment")
        yield "compacted", Text(f"{before} {would}rewritten as {after}")
    for what in summary.indices:
        yield "indices", Text(words.printable(what))
    if summary.cleanup is not None:
        yield "cleaned up", _cleanup_text(summary, would)
    for reason in summary.skipped:
        yield "skipped", Text(words.printable(reason), style="dim")
    if summary.conflict is not None:
        yield "conflict", Text(f"{words.printable(summary.conflict)}; retry later", style="yellow")
    if not summary.has_work:
        yield "", Text("nothing to do", style="green")


def _cleanup_text(summary: OptimizeSummary, would: str) -> Text:
    assert summary.cleanup is not None
    cleanup = summary.cleanup
    if not cleanup.versions and not cleanup.files_removed:
        return Text("no version is old enough", style="dim")
    versions = words.plural(len(cleanup.versions), "version")
    files = words.plural(cleanup.files_removed, "file")
    return Text(f"{versions}, {files}, {words.size(cleanup.bytes_removed)} {would}removed")
