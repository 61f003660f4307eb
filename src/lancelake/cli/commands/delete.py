"""`lancelake delete`: delete rows."""

from __future__ import annotations

from typing import Annotated

import typer

from lancelake.cli import words
from lancelake.cli.at import open_head
from lancelake.cli.console import OutputFormat
from lancelake.cli.job_bar import job_bar
from lancelake.cli.options import Branch, Message, Output, StorageOptions, Uri, location
from lancelake.cli.report import report, version_body, version_rows
from lancelake.table.publish import CommitChoices
from lancelake.table.rows.delete import delete

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Where = Annotated[
    str | None,
    typer.Option(
        "--where", "-w", metavar="SQL", show_default=False, help="Condition of the rows to delete."
    ),
]
All = Annotated[bool, typer.Option("--all", help="Delete every row.")]


@app.command("delete")
def delete_command(
    uri: Uri,
    where: Where = None,
    every: All = False,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Delete the rows that match a filter; older versions keep them."""
    if (where is None) is not every:
        raise typer.BadParameter("select rows with --where, or use --all for every row")
    base = open_head(location(uri, options), branch)
    with job_bar("part") as progress:
        done = delete(base, where, choices=CommitChoices(message=message), progress=progress)
    body = {**version_body(done.snapshot), "deleted": done.rows}
    shown = ("deleted", words.plural(done.rows, "row"))
    report(output, body, [*version_rows(done.snapshot), shown])
