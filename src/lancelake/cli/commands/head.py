"""Show the first rows."""

from __future__ import annotations

from typing import Annotated

import typer

from lancelake.cli import options
from lancelake.cli.console import RowFormat
from lancelake.cli.rows import print_stream
from lancelake.core.values.reads import ScanRequest

commands = options.CommandModule()


@commands.add(example="photos.lance -n 3 -c id")
def head(
    version: options.Version,
    rows: Annotated[
        int, typer.Option("--rows", "-n", min=0, help="Number of rows; 0 for all.")
    ] = 10,
    columns: options.Columns = None,
    filter: options.Filter = None,
    no_index: options.NoIndex = False,
    output: options.RowOutput = RowFormat.TABLE,
) -> None:
    """Show the first rows."""
    table = version.open()
    request = ScanRequest(
        columns=options.column_names(columns),
        filter=filter,
        # One more, to know whether there are more.
        limit=rows + 1 if rows else None,
        use_scalar_index=not no_index,
    )
    with table.scan(request).run() as reader:
        print_stream(reader, reader.schema, table.snapshot, output, rows)
