"""`lancelake cleanup`: remove old versions and unreferenced files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_head
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.job_bar import job_bar
from lancelake.cli.options import Branch, Output, StorageOptions, Uri, age, location
from lancelake.cli.report import version_body, version_rows
from lancelake.cli.tables import Listing, TextColumn, cut, facts, right
from lancelake.clock import SystemClock
from lancelake.commit.snapshot import Snapshot
from lancelake.table.cleanup.plan import PlannedFile, PlannedVersion, Reason
from lancelake.table.cleanup.policy import CleanupPolicy
from lancelake.table.cleanup.run import CleanupReport, clean_up

app = typer.Typer(add_completion=False, rich_markup_mode=None)

OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="AGE",
        show_default=False,
        help="Remove versions older than this, such as 14days, 12h or 0s. By default 14days, "
        "unless --retain is set.",
    ),
]
Retain = Annotated[
    int | None,
    typer.Option(
        "--retain", min=1, show_default=False, help="Keep this many of the newest versions."
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Only show what would be removed, and why the rest is kept."),
]
Unverified = Annotated[
    bool,
    typer.Option(
        "--delete-unverified",
        help="Remove unreferenced files even if they are younger than a week. Only safe "
        "without concurrent writers.",
    ),
]
RateLimit = Annotated[
    int | None,
    typer.Option(
        "--rate-limit",
        min=1,
        show_default=False,
        help="Maximum number of files to delete per second.",
    ),
]
AllBranches = Annotated[
    bool, typer.Option("--branches", help="Also clean up the branches forked from this one.")
]
ShowFiles = Annotated[bool, typer.Option("--files", help="With --dry-run, list every file.")]


@app.command()
def cleanup(
    uri: Uri,
    older_than: OlderThan = None,
    retain: Retain = None,
    dry_run: DryRun = False,
    delete_unverified: Unverified = False,
    rate_limit: RateLimit = None,
    branches: AllBranches = False,
    files: ShowFiles = False,
    branch: Branch = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Remove old versions, and files that are no longer referenced.

    The newest version is kept, and so are versions with a tag or from which a branch was forked,
    and all files that any of them, a branch or a detached version needs. Clones of this table at
    other locations are unknown here: files that they need may be removed.
    """
    clock = SystemClock()
    began = clock.monotonic_s()
    base = open_head(location(uri, options), branch)
    policy = CleanupPolicy(
        older_than=None if older_than is None else age(older_than, "'--older-than'"),
        retain_versions=retain,
        delete_unverified=delete_unverified,
        delete_rate_limit=rate_limit,
        clean_referenced_branches=branches,
    )
    with job_bar("step") as step:
        report = clean_up(base, policy, dry_run=dry_run, progress=step)
    milliseconds = round((clock.monotonic_s() - began) * 1000)
    if output is OutputFormat.JSON:
        print_json(_document(base, report, milliseconds, files=files))
    else:
        _show(base, report, milliseconds, files=files)
    if report.failed:
        raise typer.Exit(1)


def _show(base: Snapshot, report: CleanupReport, milliseconds: int, *, files: bool) -> None:
    console = stdout()
    console.print(facts(_rows(base, report, milliseconds)))
    table = Listing([TextColumn("kind"), right("files"), right("size")])
    for each in (report, *_below(report)):
        on = f"{each.plan.branch}: " if each is not report else ""
        for kind, total in each.totals.items():
            table.add(f"{on}{kind}", f"{total.files:,}", words.size(total.size_bytes))
    if table.rows:
        console.print(table)
    if report.is_dry_run and files:
        listing = Listing(
            [TextColumn(""), TextColumn("kind"), right("size"), cut("file"), cut("why")]
        )
        for sign, each_file in _signed(report):
            size = words.size(each_file.size_bytes)
            path = Text(words.printable(each_file.path))
            listing.add(sign, each_file.kind, size, path, each_file.reason)
        console.print(listing)


def _rows(
    base: Snapshot, report: CleanupReport, milliseconds: int
) -> Iterator[tuple[str, Text | str]]:
    yield from version_rows(base)
    done = "would remove" if report.is_dry_run else "removed"
    files = words.plural(report.files_removed, "file")
    size = words.size(report.bytes_removed)
    yield done, f"{words.plural(len(report.versions), 'version')}, {files}, {size}"
    kept: dict[Reason, list[PlannedVersion]] = {}
    for version in report.plan.staying_versions:
        kept.setdefault(version.reason, []).append(version)
    for reason, versions in kept.items():
        yield "kept", f"{_numbers(versions)}: {reason}"
    if report.failed:
        yield "failed", Text(words.plural(len(report.failed), "file"), style="red")
    yield "took", words.duration(milliseconds)


def _numbers(versions: list[PlannedVersion]) -> str:
    first, last = versions[0].version, versions[-1].version
    if len(versions) == 1:
        return f"version {first}"
    if last - first == len(versions) - 1:
        return f"versions {first} to {last}"
    return f"{words.plural(len(versions), 'version')} from {first} to {last}"


def _below(report: CleanupReport) -> Iterator[CleanupReport]:
    for each in report.branches:
        yield each
        yield from _below(each)


def _signed(report: CleanupReport) -> Iterable[tuple[str, PlannedFile]]:
    yield from (("-", file) for file in report.plan.going)
    yield from ((" ", file) for file in report.plan.staying)


def _document(
    base: Snapshot, report: CleanupReport, milliseconds: int, *, files: bool
) -> dict[str, Any]:  # JSON
    body: dict[str, Any] = {  # JSON
        **version_body(base),
        **_body(report),
        "dry_run": report.is_dry_run,
        "files_removed": report.files_removed,
        "bytes_removed": report.bytes_removed,
        "branches": {each.plan.branch: _body(each) for each in _below(report)},
        "milliseconds": milliseconds,
    }
    if report.is_dry_run and files:
        body["going"] = [_file(file) for file in report.plan.going]
        body["staying"] = [_file(file) for file in report.plan.staying]
    return body


def _body(report: CleanupReport) -> dict[str, Any]:  # JSON
    return {
        "versions_removed": list(report.versions),
        "versions_kept": {v.version: v.reason for v in report.plan.staying_versions},
        "kinds": {
            kind: {"files": total.files, "bytes": total.size_bytes}
            for kind, total in report.totals.items()
        },
        "failed": sorted(report.failed),
    }


def _file(file: PlannedFile) -> dict[str, Any]:  # JSON
    return {"path": file.path, "kind": file.kind, "bytes": file.size_bytes, "why": file.reason}
