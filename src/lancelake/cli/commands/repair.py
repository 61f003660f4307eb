"""`lancelake repair`: what is wrong with a table is set right in a new version."""

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
    Repaired,
    RepairPlan,
    WayBack,
    Wishes,
    apply,
    go_back,
    plan,
    way_back,
)

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Apply = Annotated[
    bool, typer.Option("--apply", help="Do it. Without it, only say what would be done.")
]
Data = Annotated[
    bool, typer.Option("--data", help="Read every value, to find wrong counts and bad files.")
]
Notes = Annotated[bool, typer.Option("--notes", help="Mend also what is harmless.")]
DropLost = Annotated[
    bool,
    typer.Option(
        "--drop-lost", help="Give up fragments whose files are gone or unreadable, with their rows."
    ),
]
ReplaceInvalidUtf8 = Annotated[
    bool,
    typer.Option(
        "--replace-invalid-utf8",
        help="Put U+FFFD in place of bytes of strings that are not UTF-8. Reads every value.",
    ),
]
RebuildIndices = Annotated[
    bool, typer.Option("--rebuild-indices", help="Build indices again that have to be dropped.")
]
NewRowIds = Annotated[
    bool, typer.Option("--new-row-ids", help="Give fresh ids to rows whose ids are lost.")
]
RemoveRefs = Annotated[
    bool, typer.Option("--remove-refs", help="Remove tags and branches that lead nowhere.")
]
RenameManifests = Annotated[
    bool,
    typer.Option(
        "--rename-manifests",
        help="Name all manifests by the current scheme. Nobody may write meanwhile.",
    ),
]
ToHealthy = Annotated[
    bool,
    typer.Option(
        "--to-healthy", help="Make the newest version that is in order the newest of all."
    ),
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
    """Set right what is damaged.

    Without --apply it is only said what would be done. Old versions are never changed: what is set
    right is a new version. What costs something, as rows or tags, must be asked for. The exit code
    is 6 when damage stays.
    """
    place = location(uri, options)
    choices = CommitChoices(message=message)
    if to_healthy:
        _back(place, choices, output, data=data, is_done=apply_it)
        return
    wishes = Wishes(
        data=data,
        notes=notes,
        drop_lost=drop_lost,
        replace_invalid_utf8=replace_invalid_utf8,
        rebuild_indices=rebuild_indices,
        new_row_ids=new_row_ids,
        remove_refs=remove_refs,
        rename_manifests=rename_manifests,
    )
    planned = plan(place, wishes)
    done = apply(planned, wishes, choices) if apply_it else None
    if output is OutputFormat.JSON:
        print_json(_document(planned, done))
    else:
        _print(stdout(), planned, done)
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
    way = way_back(place, data=data)
    made = go_back(way, choices) if is_done else None
    at = way.target if made is None else made
    body = {
        **version_body(at),
        "healthy_version": way.target.version,
        "newer_versions": [name.version for name in way.newer],
        "set_aside": [name.version for name in way.unreadable],
        "applied": made is not None and way.is_needed,
    }
    report(output, body, [*version_rows(at), ("", _way_text(way, is_done=is_done))])


def _way_text(way: WayBack, *, is_done: bool) -> Text:
    if not way.is_needed:
        return Text("the newest version is in order", style="green")
    count = words.plural(len(way.newer), "version")
    if is_done:
        return Text(f"as version {way.target.version}; {count} are left behind", style="green")
    return Text(
        f"version {way.target.version} is in order, and {count} after it are not; "
        "--apply goes back",
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


def _print(console: Console, planned: RepairPlan, done: Repaired | None) -> None:
    verb, style = ("would be set right", "yellow") if done is None else ("set right", "green")
    for branch, what in (planned if done is None else done.done).steps():
        where = f"  branch {branch}" if branch else ""
        line = Text.assemble((verb, f"bold {style}"), f"  {words.printable(what)}", (where, "dim"))
        console.print(line)
    left = planned.left if done is None else done.since.left
    for each in left:
        head = Text.assemble(("stays", "bold red"), (f"  {each.finding.code}", "bold"))
        console.print(head.append(f"  {words.printable(each.finding.message)}"))
        if each.finding.path:
            console.print(Text(f"  {words.printable(each.finding.path)}", style="cyan"))
        console.print(Text(f"  {words.printable(each.advice)}", style="dim"))
    console.print(_summary(planned, done, len(left)))


def _summary(planned: RepairPlan, done: Repaired | None, left: int) -> Text:
    if not planned.has_work:
        if not left:
            return Text("in order, nothing to repair", style="bold green")
        return Text("nothing can be set right without more being asked for", style="bold red")
    if done is None:
        return Text("nothing is done yet: --apply does it", style="bold")
    made = ", ".join(str(each.version) for each in done.versions)
    return Text(f"version {made}" if made else "done", style="bold green")
