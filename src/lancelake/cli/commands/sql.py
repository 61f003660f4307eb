"""`lancelake sql`: run SQL queries."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import Annotated

import typer

from lancelake.cli.at import open_at
from lancelake.cli.console import RowFormat, stdout
from lancelake.cli.options import At, MaxRows, RowOutput, StorageOptions, Uri, location
from lancelake.cli.row_view import print_stream
from lancelake.cli.sql_shell import Shell
from lancelake.commit.snapshot import Snapshot
from lancelake.table.sql import Query, SqlRequest

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_STDIN = "-"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

QueryText = Annotated[
    str | None,
    typer.Argument(
        metavar="QUERY",
        show_default=False,
        help="SELECT ... FROM dataset, in quotes; - for standard input. By default, an "
        "interactive shell on a terminal, else standard input.",
    ),
]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        "-t",
        metavar="NAME=URI",
        show_default=False,
        help="Another table and its name in the query; repeatable.",
    ),
]


@app.command()
def sql(
    uri: Uri,
    query: QueryText = None,
    tables: Tables = None,
    rows: MaxRows = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the query plan instead.")
    ] = False,
    at: At = None,
    options: StorageOptions = None,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """Run a SQL query, in which the table is named dataset."""
    snapshot = open_at(location(uri, options), at)
    others = dict(_other(text, options) for text in tables or ())
    request = SqlRequest(text="", others=others)

    def answer(text: str) -> None:
        asked = Query(snapshot, replace(request, text=text))
        if explain:
            stdout().print(asked.explain(), markup=False, highlight=False, soft_wrap=True)
            return
        with asked.run() as found:
            print_stream(found, found.schema, snapshot, output, rows)

    if query is None and sys.stdin.isatty():
        Shell(tables={"dataset": snapshot, **others}, answer=answer).run()
    else:
        answer(sys.stdin.read() if query in (None, _STDIN) else query or "")


def _other(text: str, options: list[str] | None) -> tuple[str, Snapshot]:
    name, separator, uri = text.partition("=")
    if not separator or not uri or not _NAME.fullmatch(name) or name.lower() == "dataset":
        problem = f"{text!r} is not of the form NAME=URI, with a name other than dataset"
        raise typer.BadParameter(problem, param_hint="'--table'")
    return name.lower(), open_at(location(uri, options), None)
