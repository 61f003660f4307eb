"""Repair damage."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import CommandModule, Message, NamedTable, Output, flag
from lancelake.cli.report import report_version
from lancelake.core.table_place import TablePlace
from lancelake.core.values.descriptions import document
from lancelake.core.values.reports import RepairOptions, Severity, apply_repairs, restore_healthy
from lancelake.core.values.writes import CommitChoices
from lancelake.errors import CorruptTableError

if TYPE_CHECKING:
    from lancelake.core.values.reports import HealthyVersion, Repaired, RepairPlan

commands = CommandModule()

Apply = Annotated[bool, flag("--apply", "Apply the repairs. Without it, they are only shown.")]
ToHealthy = Annotated[bool, flag("--to-healthy", "Restore the newest consistent version.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """Options of repairs, with the names of those of the core."""

    data: Annotated[
        bool, flag("--data", "Read every value, to find wrong counts and unreadable files.")
    ] = False
    notes: Annotated[bool, flag("--notes", "Also repair harmless findings.")] = False
    drop_lost: Annotated[
        bool,
        flag("--drop-lost", "Drop fragments with missing or unreadable files, with their rows."),
    ] = False
    replace_invalid_utf8: Annotated[
        bool,
        flag(
            "--replace-invalid-utf8",
            "Replace invalid UTF-8 bytes of strings with U+FFFD. Reads every value.",
        ),
    ] = False
    rebuild_indices: Annotated[
        bool, flag("--rebuild-indices", "Rebuild indices that have to be dropped.")
    ] = False
    new_row_ids: Annotated[
        bool, flag("--new-row-ids", "Assign new ids to rows whose ids are lost.")
    ] = False
    remove_refs: Annotated[
        bool, flag("--remove-refs", "Delete tags and branches whose target does not exist.")
    ] = False
    rename_manifests: Annotated[
        bool,
        flag(
            "--rename-manifests",
            "Rename all manifests to the current naming scheme. Only safe without concurrent "
            "writers.",
        ),
    ] = False


@commands.add(example="photos.lance")
def repair_command(
    at: NamedTable,
    *,
    apply_it: Apply = False,
    repairs: Repairs,
    to_healthy: ToHealthy = False,
    message: Message = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Repair damage. Without --apply, the repairs are only shown.

    Old versions are never changed: repairs are committed as a new version. Repairs that lose
    something, such as rows or tags, must be enabled explicitly. The exit code is 6 if damage
    remains.
    """
    place = at.place
    choices = CommitChoices(message=message)
    if to_healthy:
        _restore(place, choices, output, data=repairs.data, applies=apply_it)
        return
    options = RepairOptions(**asdict(repairs))
    planned = place.plan_repair(options)
    done = apply_repairs(planned, options, choices) if apply_it else None
    if output is OutputFormat.JSON:
        print_json(_document(planned, done))
    else:
        _print(stdout(), planned, done, options)
    left = planned.left if done is None else done.since.left
    if any(each.finding.severity is Severity.ERROR for each in left):
        raise typer.Exit(CorruptTableError.exit_code)


def _restore(
    place: TablePlace, choices: CommitChoices, output: OutputFormat, *, data: bool, applies: bool
) -> None:
    healthy = place.find_healthy(data=data)
    snapshot = restore_healthy(healthy, choices) if applies else healthy.target
    body = {
        "healthy_version": healthy.target.version,
        "newer_versions": [name.version for name in healthy.newer],
        "quarantined": [name.version for name in healthy.unreadable],
        "applied": applies and healthy.is_needed,
    }
    report_version(output, snapshot, body, [("", _healthy_text(healthy, applies=applies))])


def _healthy_text(healthy: HealthyVersion, *, applies: bool) -> Text:
    if not healthy.is_needed:
        return Text("the newest version is consistent", style="green")
    count = phrases.plural(len(healthy.newer), "version")
    if applies:
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
    console: Console, planned: RepairPlan, done: Repaired | None, options: RepairOptions
) -> None:
    verb, style = ("would be repaired", "yellow") if done is None else ("repaired", "green")
    for branch, what in (planned if done is None else done.done).steps():
        where = f"  branch {branch}" if branch else ""
        line = Text.assemble(
            (verb, f"bold {style}"), f"  {phrases.printable(what)}", (where, "dim")
        )
        console.print(line)
    left = planned.left if done is None else done.since.left
    for each in left:
        head = Text.assemble(("remains", "bold red"), (f"  {each.finding.code}", "bold"))
        console.print(head.append(f"  {phrases.printable(each.finding.message)}"))
        if each.finding.path:
            console.print(Text(f"  {phrases.printable(each.finding.path)}", style="cyan"))
        console.print(Text(f"  {phrases.printable(each.advice)}", style="dim"))
    console.print(_summary(planned, done, options, len(left)))


def _summary(planned: RepairPlan, done: Repaired | None, options: RepairOptions, left: int) -> Text:
    if not planned.has_work:
        if not left:
            unread = "" if options.reads_data else f"  {phrases.VALUES_UNREAD}"
            text = ("no problems found, nothing to repair", "bold green")
            return Text.assemble(text, (unread, "dim"))
        return Text("nothing can be repaired without further options", style="bold red")
    if done is None:
        return Text("nothing was changed: use --apply to repair", style="bold")
    versions = ", ".join(str(each.version) for each in done.versions)
    return Text(f"version {versions}" if versions else "done", style="bold green")
