"""`lancelake update`: set columns of rows that match a filter."""

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
from lancelake.table.rows.update import Rewriting, update

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Set = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="COLUMN=SQL",
        show_default=False,
        help="A column and the SQL expression of its new value; repeatable.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        "-w",
        metavar="SQL",
        show_default=False,
        help="Update only rows that match this condition.",
    ),
]
Mode = Annotated[
    Rewriting,
    typer.Option(
        "--write-mode",
        help="Rewrite the rows, or these columns of their fragments, or whichever writes "
        "fewer bytes.",
    ),
]


@app.command("update")
def update_command(
    uri: Uri,
    values: Set,
    where: Where = None,
    write_mode: Mode = Rewriting.AUTO,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Set columns of the rows that match a filter to the values of SQL expressions.

    Without --where, every row matches.
    """
    updates = _updates(values)
    base = open_head(location(uri, options), branch)
    choices = CommitChoices(message=message)
    with job_bar("part") as progress:
        done = update(
            base, updates, where, rewriting=write_mode, choices=choices, progress=progress
        )
    body = {**version_body(done.snapshot), "updated": done.rows}
    shown = ("updated", words.plural(done.rows, "row"))
    report(output, body, [*version_rows(done.snapshot), shown])


def _updates(values: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for value in values:
        column, separator, text = value.partition("=")
        if not column.strip() or not separator or not text.strip():
            raise typer.BadParameter(
                f"{value!r} is not of the form COLUMN=SQL", param_hint="'--set'"
            )
        if column.strip() in found:
            raise typer.BadParameter(f"{column.strip()!r} is set twice", param_hint="'--set'")
        found[column.strip()] = text.strip()
    return found
