"""Check a table, its tags and branches for damage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, print_json, stderr, stdout
from lancelake.cli.options import CommandModule, NamedTable, Output, flag
from lancelake.core.values.descriptions import document
from lancelake.core.values.reports import Severity
from lancelake.errors import CorruptTableError

if TYPE_CHECKING:
    from lancelake.core.values.reports import CheckProgress, Finding

commands = CommandModule()

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "blue"}
_NAMES = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


@commands.add(example="photos.lance --all-versions")
def check_command(
    at: NamedTable,
    data: Annotated[bool, flag("--data", "Also read every value.")] = False,
    all_versions: Annotated[
        bool, flag("--all-versions", "Check every version, and find orphan files.")
    ] = False,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Check a table, its tags and branches for damage, and for other problems.

    The exit code is 6 if there is damage.
    """
    watch = _Watch()
    place = at.place
    findings = place.check(
        data=data, versions="all" if all_versions else "latest", on_progress=watch.step
    )
    counts: Counter[Severity] = Counter()
    if output is OutputFormat.JSON:
        all_findings = list(findings)
        counts.update(finding.severity for finding in all_findings)
        totals = {severity.value: counts[severity] for severity in Severity}
        summary = {**totals, "versions_checked": watch.versions, "values_checked": data}
        body = {"uri": place.location.uri, "findings": document(all_findings), "summary": summary}
        print_json(body)
    else:
        console = stdout()
        for finding in watch.over(findings):
            counts[finding.severity] += 1
            _print(console, finding)
        console.print(_summary(counts, watch.versions, data=data))
    if counts[Severity.ERROR]:
        raise typer.Exit(CorruptTableError.exit_code)


class _Watch:
    """Counts the versions, and shows the progress of the check on a terminal."""

    def __init__(self) -> None:
        self._status = stderr().status("")
        self.versions = 0

    def step(self, progress: CheckProgress) -> None:
        """Record a step."""
        self.versions = progress.total
        self._status.update(f"{progress.step}  {progress.done} of {progress.total}")

    def over(self, findings: Iterator[Finding]) -> Iterator[Finding]:
        """Yield findings; in between the progress is shown on a terminal."""
        is_shown = self._status.console.is_terminal
        try:
            while True:
                if is_shown:
                    self._status.start()
                finding = next(findings, None)
                self._status.stop()
                if finding is None:
                    return
                yield finding
        finally:
            self._status.stop()


def _print(console: Console, finding: Finding) -> None:
    head = Text(_NAMES[finding.severity], style=_STYLES[finding.severity])
    head.append(f"  {finding.code}", style="bold")
    where = "" if finding.version is None else f"version {finding.version}"
    if finding.branch is not None:
        where += f" of branch {phrases.printable(finding.branch)}"
    if where:
        head.append(f"  {where.strip()}", style="dim")
    console.print(head)
    if finding.path is not None:
        console.print(Text(f"  {phrases.printable(finding.path)}", style="cyan"))
    console.print(Text(f"  {phrases.printable(finding.message)}"))
    if finding.hint is not None:
        console.print(Text(f"  {phrases.printable(finding.hint)}", style="dim"))
    console.print()


def _summary(counts: Counter[Severity], versions: int, *, data: bool) -> Text:
    looked = f"{phrases.plural(versions, 'version')} checked"
    looked += "" if data else f"; {phrases.VALUES_UNREAD}"
    if not counts:
        return Text.assemble(("no problems found", "bold green"), (f"  {looked}", "dim"))
    parts = [phrases.plural(counts[s], _NAMES[s]) for s in Severity if counts[s]]
    style = "bold green"
    for severity in (Severity.WARNING, Severity.ERROR):
        style = _STYLES[severity] if counts[severity] else style
    return Text.assemble((", ".join(parts), style), (f"  {looked}", "dim"))
