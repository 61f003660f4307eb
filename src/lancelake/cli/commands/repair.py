"""`lancelake repair`: repair a table in a new version."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import Message, Output, StorageOptions, Uri, location
from lancelake.cli.report import report, version_body, version_rows
from lancelake.errors import CorruptTableError
from lancelake.storage.location import Location
from lancelake.table.check import Severity
from lancelake.table.describe.documents import document
from lancelake.table.publish import CommitChoices
from lancelake.table.repair import (
    HealthyVersion,
    Repaired,
    RepairOptions,
    RepairPlan,
    apply,
    find_healthy,
    plan,
    restore_healthy,
)

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Apply = Annotated[
    bool, typer.Option("--apply", help="Apply the repairs. Without it, they are only shown.")
]
Data = Annotated[
    bool,
    typer.Option("--data", help="Read every value, to find wrong counts and unreadable files."),
]
Notes = Annotated[bool, typer.Option("--notes", help="Also repair harmless findings.")]
DropLost = Annotated[
    bool,
    typer.Option(
        "--drop-lost", help="Drop fragments with missing or unreadable files, with their rows."
    ),
]
ReplaceInvalidUtf8 = Annotated[
    bool,
    typer.Option(
        "--replace-invalid-utf8",
        help="Replace invalid UTF-8 bytes of strings with U+FFFD. Reads every value.",
    ),
]
RebuildIndices = Annotated[
    bool, typer.Option("--rebuild-indices", help="Rebuild indices that have to be dropped.")
]
NewRowIds = Annotated[
    bool, typer.Option("--new-row-ids", help="Assign new ids to rows whose ids are lost.")
]
RemoveRefs = Annotated[
    bool,
    typer.Option("--remove-refs", help="Delete tags and branches whose target does not exist."),
]
RenameManifests = Annotated[
    bool,
    typer.Option(
        "--rename-manifests",
        help="Rename all manifests to the current naming scheme. Only safe without concurrent "
        "writers.",
    ),
]
ToHealthy = Annotated[
    bool,
    typer.Option("--to-healthy", help="Restore the newest consistent version."),
]


@app.command("repair")
def repair_command(
    uri: Uri,
    apply_it: Apply = False,
    data: Data = False,
    notes: Notes = False,
    drop_lost: DropLost = False,
    replace_invalid_utf8: ReplaceInvalidUtf8 = False,
    rebuild_indices: RebuildIndices = False,
    new_row_ids: NewRowIds = False,
    remove_refs: RemoveRefs = False,
    rename_manifests: RenameManifests = False,
    to_healthy: ToHealthy = False,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Repair damage. Without --apply, the repairs are only shown.

    Old versions are never changed: repairs are committed as a new version. Repairs that lose
    something, such as rows or tags, must be enabled explicitly. The exit code is 6 if damage
    remains.
    """
    place = location(uri, options)
    choices = CommitChoices(message=message)
    if to_healthy:
        _back(place, choices, output, data=data, is_done=apply_it)
        return
    asked = RepairOptions(
        data=data,
        notes=notes,
        drop_lost=drop_lost,
        replace_invalid_utf8=replace_invalid_utf8,
        rebuild_indices=rebuild_indices,
        new_row_ids=new_row_ids,
        remove_refs=remove_refs,
        rename_manifests=rename_manifests,
    )
    planned = plan(place, asked)
    done = apply(planned, asked, choices) if apply_it else None
    if output is OutputFormat.JSON:
        print_json(_document(planned, done))
    else:
        _print(stdout(), planned, done, asked)
    left = planned.left if done is None else done.since.left
    if any(each.finding.severity is Severity.ERROR for each in left):
        raise typer.Exit(CorruptTableError.exit_code)


def _back(
    place: Location,
    choices: CommitChoices,
    output: OutputFormat,
    *,
    data: bool,
    is_done: bool,
) -> None:
    healthy = find_healthy(place, data=data)
    made = restore_healthy(healthy, choices) if is_done else None
    at = healthy.target if made is None else made
    body = {
        **version_body(at),
        "healthy_version": healthy.target.version,
        "newer_versions": [name.version for name in healthy.newer],
        "quarantined": [name.version for name in healthy.unreadable],
        "applied": made is not None and healthy.is_needed,
    }
    report(output, body, [*version_rows(at), ("", _healthy_text(healthy, is_done=is_done))])


def _healthy_text(healthy: HealthyVersion, *, is_done: bool) -> Text:
    if not healthy.is_needed:
        return Text("the newest version is consistent", style="green")
    count = words.plural(len(healthy.newer), "version")
    if is_done:
        return Text(f"restored version {healthy.target.version}; {count} skipped", style="green")
    return Text(
        f"version {healthy.target.version} is consistent, but {count} after it are not; --apply "
        "restores it",
        style="yellow",
    )


def _document(planned: RepairPlan, done: Repaired | None) -> dict[str, Any]:  # JSON
    done_plan = planned if done is None else done.done
    left = planned.left if done is None else done.since.left
    return {
        "uri": planned.location.uri,
        "applied": done is not None,
        "steps": [{"branch": branch, "what": what} for branch, what in done_plan.steps()],
        "versions": []
        if done is None
        else [{"branch": each.branch, "version": each.version} for each in done.versions],
        "left": [{"finding": document(each.finding), "advice": each.advice} for each in left],
    }


def _print(
    console: Console, planned: RepairPlan, done: Repaired | None, asked: RepairOptions
) -> None:
    verb, style = ("would be repaired", "yellow") if done is None else ("repaired", "green")
    for branch, what in (planned if done is None else done.done).steps():
        where = f"  branch {branch}" if branch else ""
        line = Text.assemble((verb, f"bold {style}"), f"  {words.printable(what)}", (where, "dim"))
        console.print(line)
    left = planned.left if done is None else done.since.left
    for each in left:
        head = Text.assemble(("remains", "bold red"), (f"  {each.finding.code}", "bold"))
        console.print(head.append(f"  {words.printable(each.finding.message)}"))
        if each.finding.path:
            console.print(Text(f"  {words.printable(each.finding.path)}", style="cyan"))
        console.print(Text(f"  {words.printable(each.advice)}", style="dim"))
    console.print(_summary(planned, done, asked, len(left)))


def _summary(planned: RepairPlan, done: Repaired | None, asked: RepairOptions, left: int) -> Text:
    if not planned.has_work:
        if not left:
            unread = "" if asked.reads_data else f"  {words.VALUES_UNREAD}"
            found = ("no problems found, nothing to repair", "bold green")
            return Text.assemble(found, (unread, "dim"))
        return Text("nothing can be repaired without further options", style="bold red")
    if done is None:
        return Text("nothing was changed: use --apply to repair", style="bold")
    made = ", ".join(str(each.version) for each in done.versions)
    return Text(f"version {made}" if made else "done", style="bold green")
