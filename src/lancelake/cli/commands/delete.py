"""Delete the rows that match a filter."""

from __future__ import annotations

from typing import Annotated

import typer

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, job_bar
from lancelake.cli.options import Change, CommandModule, Output, flag, option
from lancelake.cli.report import report_version

commands = CommandModule()

Where = Annotated[
    str | None, option("--where", "SQL", "Condition of the rows to delete.", short="-w")
]
All = Annotated[bool, flag("--all", "Delete every row.")]


@commands.add(example="photos.lance --where 'id = 3'")
def delete_command(
    change: Change, where: Where = None, every: All = False, output: Output = OutputFormat.TABLE
) -> None:
    """Delete the rows that match a filter; older versions keep them."""
    if (where is None) is not every:
        raise typer.BadParameter("select rows with --where, or use --all for every row")
    table = change.open()
    with job_bar("part") as progress:
        done = table.delete(where, choices=change.choices, progress=progress)
    rows = phrases.plural(done.rows, "row")
    report_version(output, done.snapshot, {"deleted": done.rows}, [("deleted", rows)])
