"""Options that commands share, and their parsing."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from lancelake.cli.completion import complete_branches, complete_columns, complete_refs
from lancelake.cli.console import OutputFormat, RowFormat
from lancelake.cli.table_location import location as location  # noqa: PLC0414  # for commands
from lancelake.format.column_path import comma_parts
from lancelake.format.durations import parse_duration

Uri = Annotated[
    str, typer.Argument(metavar="URI", show_default=False, help="Path or URI of the table.")
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="WHEN",
        show_default=False,
        autocompletion=complete_refs,
        help="A version, TAG, BRANCH:VERSION, BRANCH:, or a time such as 2026-01-31T12:00. "
        "By default, the latest version.",
    ),
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        "-s",
        metavar="KEY=VALUE",
        show_default=False,
        help="Option for the object store; repeatable.",
    ),
]
Output = Annotated[
    OutputFormat, typer.Option("--output", "-o", help="Output format: a readable table, or JSON.")
]
RowOutput = Annotated[
    RowFormat,
    typer.Option(
        "--output", "-o", help="Output format: a readable table, or complete values for programs."
    ),
]
MaxRows = Annotated[
    int | None,
    typer.Option(
        "--rows",
        "-n",
        min=0,
        show_default=False,
        help="Maximum number of rows; 0 for all. By default, 100 in a table and all in other "
        "formats.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        "-c",
        metavar="A,B.C",
        show_default=False,
        autocompletion=complete_columns,
        help="Columns, separated by commas; B.C is field C of struct B.",
    ),
]
Filter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        "-f",
        metavar="SQL",
        show_default=False,
        help="Only rows that match this condition.",
    ),
]
NoIndex = Annotated[
    bool,
    typer.Option("--no-index", help="Scan the rows instead of using indices."),
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        show_default=False,
        help="l2, cosine, dot or hamming. By default, that of the index.",
    ),
]
RefineFactor = Annotated[
    int | None,
    typer.Option(
        "--refine-factor",
        metavar="N",
        min=1,
        show_default=False,
        help="Re-rank N * k candidates by the distances of their stored vectors.",
    ),
]
Message = Annotated[
    str | None,
    typer.Option(
        "--message",
        "-m",
        metavar="TEXT",
        show_default=False,
        help="Commit message, shown by `lancelake log`.",
    ),
]
Branch = Annotated[
    str | None,
    typer.Option(
        "--branch",
        metavar="NAME",
        show_default=False,
        autocompletion=complete_branches,
        help="Branch to change. By default, main.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="CHAR",
        show_default=False,
        help="Delimiter of CSV files. By default, a comma.",
    ),
]
Partitions = Annotated[
    bool,
    typer.Option(
        "--partitions/--no-partitions",
        help="Whether partition folders such as day=1 become columns.",
    ),
]


def age(text: str, hint: str) -> timedelta:
    """Parse an age such as `12h`, the value of the option `hint`."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=hint) from error


def column_names(text: str | None, option: str = "--columns") -> tuple[str, ...] | None:
    """Split the value of an option at commas; a name in backticks may contain one."""
    if text is None:
        return None
    names = comma_parts(text)
    if not all(names):
        raise typer.BadParameter(
            f"{text!r} contains an empty column name", param_hint=f"'{option}'"
        )
    return names


def subcommands(about: str) -> typer.Typer:
    """Return the group of a command with commands of its own."""
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, no_args_is_help=True, help=about
    )
