"""Add, drop, rename and alter columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import typer
from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, job_bar
from lancelake.cli.options import Change, CommandModule, Output, argument, option
from lancelake.cli.report import report_version
from lancelake.cli.rows import parse_type
from lancelake.cli.tables import key_values
from lancelake.core.values.writes import ColumnChange

if TYPE_CHECKING:
    from lancelake.core.values.metadata import Snapshot

commands = CommandModule(
    "Add, drop, rename and alter columns.", example="drop photos.lance caption"
)

_PATH = "B.C is field C of struct B."
Computed = Annotated[
    list[str] | None, argument("NAME=SQL", "Columns and the SQL expressions of their values.")
]
Null = Annotated[
    list[str] | None,
    option(
        "--null", "NAME=TYPE", "A column that is null in every row; repeatable. No data is written."
    ),
]
Paths = Annotated[list[str], argument("COLUMN", f"Columns to drop; {_PATH}")]
Path = Annotated[str, argument("COLUMN", f"Column to change; {_PATH}")]
NewName = Annotated[str, argument("NAME", "The new name.")]
Names = Annotated[list[str], argument("COLUMN", "Columns to move to the front; the others follow.")]
Type = Annotated[
    str | None,
    option(
        "--type",
        "TYPE",
        "The new type, such as int32 or float[768]. Indices on the column are dropped.",
    ),
]
Nullable = Annotated[
    bool | None,
    typer.Option(
        "--nullable/--not-null", show_default=False, help="Whether the column is nullable."
    ),
]
Name = Annotated[str | None, option("--name", "NAME", "The new name.")]


@commands.add("add", example="days.lance 'fahrenheit=temperature * 1.8 + 32'")
def add_command(
    change: Change,
    computed: Computed = None,
    null: Null = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Add columns: computed ones, or null ones with --null."""
    if bool(computed) == bool(null):
        raise typer.BadParameter("specify columns as NAME=SQL, or with --null as NAME=TYPE")
    expressions = key_values(computed, "NAME=SQL", is_sql=True)
    types = key_values(null, "NAME=TYPE", is_sql=True)
    schema = pa.schema([pa.field(name, parse_type(text)) for name, text in types.items()])
    columns = change.open().columns
    if types:
        _report(output, columns.add_null(schema, choices=change.choices))
        return
    with job_bar("fragment") as progress:
        added = columns.add_computed(expressions, choices=change.choices, progress=progress)
    _report(output, added)


@commands.add("drop", example="photos.lance caption")
def drop_command(change: Change, columns: Paths, output: Output = OutputFormat.TABLE) -> None:
    """Drop columns, or struct fields; older versions keep them."""
    table = change.open()
    table.columns.ensure_structs_stay(columns)
    _report(output, table.columns.drop(columns, choices=change.choices))


@commands.add("rename", example="photos.lance caption title")
def rename_command(
    change: Change, column: Path, name: NewName, output: Output = OutputFormat.TABLE
) -> None:
    """Rename a column; no data is written."""
    renaming = ColumnChange(path=column, name=name)
    _report(output, change.open().columns.alter([renaming], choices=change.choices))


@commands.add("alter", example="days.lance temperature --type float32")
def alter_command(
    change: Change,
    column: Path,
    type: Type = None,
    nullable: Nullable = None,
    name: Name = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change the type, nullability or name of a column."""
    if type is None and nullable is None and name is None:
        raise typer.BadParameter("set --type, --nullable, --not-null or --name")
    data_type = None if type is None else parse_type(type)
    altered = ColumnChange(path=column, name=name, nullable=nullable, data_type=data_type)
    table = change.open()
    with job_bar("fragment") as progress:
        done = table.columns.alter([altered], choices=change.choices, progress=progress)
    _report(output, done)


@commands.add("reorder", example="photos.lance caption id")
def reorder_command(change: Change, columns: Names, output: Output = OutputFormat.TABLE) -> None:
    """Move columns to the front, in this order; no data is written."""
    _report(output, change.open().columns.reorder(columns, choices=change.choices))


def _report(output: OutputFormat, snapshot: Snapshot) -> None:
    names = list(snapshot.manifest.schema.names)
    text = Text(", ".join(phrases.printable(name) for name in names))
    report_version(output, snapshot, {"columns": names}, [("columns", text)])
