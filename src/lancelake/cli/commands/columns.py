"""`lancelake columns`: add, drop, rename and alter columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import pyarrow as pa
import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_head
from lancelake.cli.console import OutputFormat
from lancelake.cli.job_bar import job_bar
from lancelake.cli.options import (
    Branch,
    Message,
    Output,
    StorageOptions,
    Uri,
    location,
    subcommands,
)
from lancelake.cli.report import report, version_body, version_rows
from lancelake.cli.type_words import parse_type
from lancelake.commit.snapshot import Snapshot
from lancelake.table.columns import add, alter, drop
from lancelake.table.columns.alter import ColumnChange
from lancelake.table.publish import CommitChoices

app = subcommands("Add, drop, rename and alter columns.")

_PATH = "B.C is field C of struct B."
Computed = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME=SQL",
        show_default=False,
        help="Columns and the SQL expressions of their values.",
    ),
]
Null = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        metavar="NAME=TYPE",
        show_default=False,
        help="A column that is null in every row; repeatable. No data is written.",
    ),
]
Paths = Annotated[
    list[str],
    typer.Argument(metavar="COLUMN", show_default=False, help=f"Columns to drop; {_PATH}"),
]
Path = Annotated[
    str,
    typer.Argument(metavar="COLUMN", show_default=False, help=f"Column to change; {_PATH}"),
]
NewName = Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="The new name.")]
Names = Annotated[
    list[str],
    typer.Argument(
        metavar="COLUMN",
        show_default=False,
        help="Columns to move to the front; the others follow.",
    ),
]
Type = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        show_default=False,
        help="The new type, such as int32 or float[768]. Indices on the column are dropped.",
    ),
]
Nullable = Annotated[
    bool | None,
    typer.Option(
        "--nullable/--not-null", show_default=False, help="Whether the column is nullable."
    ),
]
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", show_default=False, help="The new name.")
]


@app.command("add")
def add_command(
    uri: Uri,
    computed: Computed = None,
    null: Null = None,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Add columns: computed ones, or null ones with --null."""
    if bool(computed) == bool(null):
        raise typer.BadParameter("specify columns as NAME=SQL, or with --null as NAME=TYPE")
    expressions = _pairs(computed or (), "NAME=SQL")
    fields = [pa.field(k, parse_type(v)) for k, v in _pairs(null or (), "NAME=TYPE").items()]
    base = open_head(location(uri, options), branch)
    choices = CommitChoices(message=message)
    if fields:
        _report(output, add.add_null_columns(base, pa.schema(fields), choices=choices))
        return
    with job_bar("fragment") as progress:
        made = add.add_computed_columns(base, expressions, choices=choices, progress=progress)
    _report(output, made)


@app.command("drop")
def drop_command(
    uri: Uri,
    columns: Paths,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Drop columns, or struct fields; older versions keep them."""
    base = open_head(location(uri, options), branch)
    drop.ensure_structs_stay(base, columns)
    _report(output, drop.drop_columns(base, columns, choices=CommitChoices(message=message)))


@app.command("rename")
def rename_command(
    uri: Uri,
    column: Path,
    name: NewName,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Rename a column; no data is written."""
    base = open_head(location(uri, options), branch)
    change = ColumnChange(path=column, name=name)
    choices = CommitChoices(message=message)
    _report(output, alter.alter_columns(base, [change], choices=choices))


@app.command("alter")
def alter_command(
    uri: Uri,
    column: Path,
    type: Type = None,
    nullable: Nullable = None,
    name: Name = None,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change the type, nullability or name of a column."""
    if type is None and nullable is None and name is None:
        raise typer.BadParameter("set --type, --nullable, --not-null or --name")
    data_type = None if type is None else parse_type(type)
    change = ColumnChange(path=column, name=name, nullable=nullable, data_type=data_type)
    base = open_head(location(uri, options), branch)
    choices = CommitChoices(message=message)
    with job_bar("fragment") as progress:
        made = alter.alter_columns(base, [change], choices=choices, progress=progress)
    _report(output, made)


@app.command("reorder")
def reorder_command(
    uri: Uri,
    columns: Names,
    branch: Branch = None,
    message: Message = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Move columns to the front, in this order; no data is written."""
    base = open_head(location(uri, options), branch)
    choices = CommitChoices(message=message)
    _report(output, drop.reorder_columns(base, columns, choices=choices))


def _pairs(pairs: Sequence[str], form: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not name or not separator or not value:
            raise typer.BadParameter(f"{pair!r} is not of the form {form}")
        if name in found:
            raise typer.BadParameter(f"{name!r} is specified twice")
        found[name] = value
    return found


def _report(output: OutputFormat, made: Snapshot) -> None:
    names = list(made.manifest.schema.names)
    body = {**version_body(made), "columns": names}
    shown = Text(", ".join(words.printable(name) for name in names))
    report(output, body, [*version_rows(made), ("columns", shown)])
