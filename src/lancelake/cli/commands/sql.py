"""`lancelake sql`: run a SQL query."""

from __future__ import annotations

from typing import Annotated

import typer

from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, stdout
from lancelake.cli.options import At, Output, StorageOptions, Uri, location
from lancelake.cli.row_view import first_rows, print_json_rows, print_rows
from lancelake.table.sql import Query, SqlRequest

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_SHOWN = 100


@app.command()
def sql(
    uri: Uri,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY", show_default=False, help="SELECT ... FROM dataset, in quotes."
        ),
    ],
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            "-n",
            min=0,
            show_default=False,
            help=f"Maximum number of rows. By default {_SHOWN}, and all with -o json.",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the query plan instead.")
    ] = False,
    at: At = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Run a SQL query, in which the table is named dataset."""
    snapshot = open_at(location(uri, options), at)
    asked = Query(snapshot, SqlRequest(text=query))
    if explain:
        stdout().print(asked.explain(), markup=False, highlight=False, soft_wrap=True)
        return
    answer = asked.run()
    if output is OutputFormat.JSON:
        print_json_rows(answer, answer.schema, snapshot, rows)
    else:
        first = first_rows(answer, answer.schema, _SHOWN if rows is None else rows)
        print_rows(first.table, snapshot, output, has_more=first.has_more)
    answer.close()
