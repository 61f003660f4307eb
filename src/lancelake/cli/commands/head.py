"""`lancelake head`: show the first rows of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from lancelake.cli.at import open_at
from lancelake.cli.console import RowFormat
from lancelake.cli.options import (
    At,
    Columns,
    Filter,
    NoIndex,
    RowOutput,
    StorageOptions,
    Uri,
    column_names,
    location,
)
from lancelake.cli.row_view import print_stream
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def head(
    uri: Uri,
    rows: Annotated[
        int, typer.Option("--rows", "-n", min=0, help="Number of rows; 0 for all.")
    ] = 10,
    columns: Columns = None,
    filter: Filter = None,
    no_index: NoIndex = False,
    at: At = None,
    options: StorageOptions = None,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """Show the first rows."""
    snapshot = open_at(location(uri, options), at)
    request = ScanRequest(
        columns=column_names(columns),
        filter=filter,
        # One more, to know whether there are more.
        limit=rows + 1 if rows else None,
        use_scalar_index=not no_index,
    )
    with run(plan(snapshot, request)) as found:
        print_stream(found, found.schema, snapshot, output, rows)
