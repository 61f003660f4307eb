"""Set columns of the rows that match a filter."""

from __future__ import annotations

from typing import Annotated

import typer

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, job_bar
from lancelake.cli.options import Change, CommandModule, Output, option
from lancelake.cli.report import report_version
from lancelake.cli.tables import key_values
from lancelake.core.values.writes import Rewriting

commands = CommandModule()

Set = Annotated[
    list[str],
    option("--set", "COLUMN=SQL", "A column and the SQL expression of its new value; repeatable."),
]
Where = Annotated[
    str | None, option("--where", "SQL", "Update only rows that match this condition.", short="-w")
]
Mode = Annotated[
    Rewriting,
    typer.Option(
        "--write-mode",
        help="Rewrite the rows, or these columns of their fragments, or whichever writes "
        "fewer bytes.",
    ),
]


@commands.add(example="photos.lance --set id=4 --where 'id = 3'")
def update_command(
    change: Change,
    values: Set,
    where: Where = None,
    write_mode: Mode = Rewriting.AUTO,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Set columns of the rows that match a filter to the values of SQL expressions.

    Without --where, every row matches.
    """
    updates = key_values(values, "COLUMN=SQL", "'--set'", is_sql=True)
    table = change.open()
    with job_bar("part") as progress:
        done = table.update(
            updates, where, rewriting=write_mode, choices=change.choices, progress=progress
        )
    rows = phrases.plural(done.rows, "row")
    report_version(output, done.snapshot, {"updated": done.rows}, [("updated", rows)])
