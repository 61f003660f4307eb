"""Remove old versions, and files that are no longer referenced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, job_bar, print_json, stdout
from lancelake.cli.options import CommandModule, Head, Output, age, flag, option
from lancelake.cli.report import (
    Listing,
    TextColumn,
    cut,
    facts,
    print_listing,
    right,
    version_body,
    version_rows,
)
from lancelake.clock import utc_from_ns
from lancelake.core.table import Table
from lancelake.core.values.reports import CleanupPolicy
from lancelake.errors import TableNotFoundError

if TYPE_CHECKING:
    from lancelake.core.values.reports import CleanupReport, PlannedFile, PlannedVersion, Reason

commands = CommandModule()

_SECOND_NS = 1_000_000_000

OlderThan = Annotated[
    str | None,
    option(
        "--older-than",
        "AGE",
        "Remove versions older than this, such as 14days, 12h or 0s. By default 14days, "
        "unless --retain is set.",
    ),
]
Retain = Annotated[
    int | None, option("--retain", None, "Keep this many of the newest versions.", min=1)
]
DryRun = Annotated[
    bool, flag("--dry-run", "Only show what would be removed, and why the rest is kept.")
]
Unverified = Annotated[
    bool,
    flag(
        "--delete-unverified",
        "Remove unreferenced files even if they are younger than a week. Only safe "
        "without concurrent writers.",
    ),
]
RateLimit = Annotated[
    int | None, option("--rate-limit", None, "Maximum number of files to delete per second.", min=1)
]
AllBranches = Annotated[
    bool, flag("--branches", "Also clean up the branches forked from this one.")
]
ShowFiles = Annotated[bool, flag("--files", "With --dry-run, list every file.")]


@commands.add(example="photos.lance --dry-run")
def cleanup(
    head: Head,
    older_than: OlderThan = None,
    retain: Retain = None,
    dry_run: DryRun = False,
    delete_unverified: Unverified = False,
    rate_limit: RateLimit = None,
    branches: AllBranches = False,
    files: ShowFiles = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Remove old versions, and files that are no longer referenced.

    The newest version is kept, and so are versions with a tag or from which a branch was forked,
    and all files that any of them, a branch or a detached version needs. Clones of this table at
    other locations are unknown here: files that they need may be removed.

    Of a folder that never became a table, since its first write failed, all files are removed with
    --delete-unverified. It must not be a base path of a table at another location.
    """
    clock = head.place.location.session.clock
    began = clock.monotonic_s()
    policy = CleanupPolicy(
        older_than=None if older_than is None else age(older_than, "'--older-than'"),
        retain_versions=retain,
        delete_unverified=delete_unverified,
        delete_rate_limit=rate_limit,
        clean_referenced_branches=branches,
    )
    table = _open(head)
    with job_bar("step") as step:
        report = (
            head.place.clean_up_folder(policy, dry_run=dry_run)
            if table is None
            else table.maintenance.clean_up(policy, dry_run=dry_run, progress=step)
        )
    milliseconds = round((clock.monotonic_s() - began) * 1000)
    if output is OutputFormat.JSON:
        print_json(_document(table, report, milliseconds, files=files))
    else:
        _show(table, report, milliseconds, files=files)
    if report.failed:
        raise typer.Exit(1)


def _open(head: Head) -> Table | None:
    """Open the table; None for a folder that never became one."""
    try:
        return head.open()
    except TableNotFoundError:
        if head.branch is not None or not head.place.is_abandoned():
            raise
        return None


def _show(table: Table | None, report: CleanupReport, milliseconds: int, *, files: bool) -> None:
    stdout().print(facts(_rows(table, report, milliseconds)))
    kinds = Listing([TextColumn("kind"), right("files"), right("size")])
    for each in (report, *_below(report)):
        on = f"{each.plan.branch}: " if each is not report else ""
        for kind, total in each.totals.items():
            kinds.add(f"{on}{kind}", f"{total.files:,}", phrases.size(total.size_bytes))
    if kinds.rows:
        print_listing(kinds)
    if report.is_dry_run and files:
        listing = Listing(
            [TextColumn(""), TextColumn("kind"), right("size"), cut("file"), cut("why")]
        )
        for sign, each_file in _files(report):
            size = phrases.size(each_file.size_bytes)
            path = Text(phrases.printable(each_file.path))
            listing.add(sign, each_file.kind, size, path, each_file.reason)
        print_listing(listing)


def _rows(
    table: Table | None, report: CleanupReport, milliseconds: int
) -> Iterator[tuple[str, Text | str]]:
    if table is None:
        yield "folder", Text(phrases.printable(report.plan.location.uri))
        yield "versions", "none: the folder never became a table"
    else:
        yield from version_rows(table.snapshot)
    done = "would remove" if report.is_dry_run else "removed"
    files = phrases.plural(report.files_removed, "file")
    size = phrases.size(report.bytes_removed)
    yield done, f"{phrases.plural(len(report.versions), 'version')}, {files}, {size}"
    by_reason: dict[Reason, list[PlannedVersion]] = {}
    for version in report.plan.staying_versions:
        by_reason.setdefault(version.reason, []).append(version)
    for reason, versions in by_reason.items():
        yield "kept", f"{_numbers(versions)}: {reason}"
    if orphans := _orphans(report):
        files, size = phrases.plural(orphans["files"], "orphan"), phrases.size(orphans["bytes"])
        oldest = phrases.age(0, orphans["oldest_seconds"] * _SECOND_NS)
        yield "waiting", f"{files}, {size}, the oldest of {oldest}: a write may be in progress"
        yield "", f"{_removal(report, is_table=table is not None)}--delete-unverified removes them"
    if report.failed:
        yield "failed", Text(phrases.plural(len(report.failed), "file"), style="red")
    yield "took", phrases.duration(milliseconds)


def _orphans(report: CleanupReport) -> dict[str, int]:
    """Count the files that no version refers to, and that stay."""
    files = [file for file in report.waiting if file.modified_ns is not None]
    if not files:
        return {}
    now_ns = report.plan.location.session.clock.now_ns()
    ages = [(now_ns - (file.modified_ns or 0)) // _SECOND_NS for file in files]
    return {
        "files": len(files),
        "bytes": sum(file.size_bytes for file in files),
        "oldest_seconds": max(0, *ages),
        "newest_seconds": max(0, min(ages)),
    }


def _removal(report: CleanupReport, *, is_table: bool) -> str:
    """Say from when on a cleanup removes all orphans."""
    until_ns = report.waiting_until_ns
    if not is_table or until_ns is None:
        return ""
    return f"removed by a cleanup after {phrases.moment(utc_from_ns(until_ns))}; "


def _numbers(versions: list[PlannedVersion]) -> str:
    first, last = versions[0].version, versions[-1].version
    if len(versions) == 1:
        return f"version {first}"
    if last - first == len(versions) - 1:
        return f"versions {first} to {last}"
    return f"{phrases.plural(len(versions), 'version')} from {first} to {last}"


def _below(report: CleanupReport) -> Iterator[CleanupReport]:
    for each in report.branches:
        yield each
        yield from _below(each)


def _files(report: CleanupReport) -> Iterable[tuple[str, PlannedFile]]:
    yield from (("-", file) for file in report.plan.going)
    yield from ((" ", file) for file in report.plan.staying)


def _document(
    table: Table | None, report: CleanupReport, milliseconds: int, *, files: bool
) -> dict[str, Any]:  # JSON
    body: dict[str, Any] = {  # JSON
        **({"uri": report.plan.location.uri} if table is None else version_body(table.snapshot)),
        **_body(report),
        "orphans": _orphans(report) or {"files": 0, "bytes": 0},
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
