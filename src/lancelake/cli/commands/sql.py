"""`lancelake sql`: the answer to a query."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, stdout
from lancelake.cli.options import At, Output, StorageOptions, Uri, location
from lancelake.cli.row_view import print_rows
from lancelake.table.sql import Query, SqlRequest

app = typer.Typer(add_completion=False, rich_markup_mode=None)


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
        int, typer.Option("--rows", "-n", min=0, help="How many rows to show, at most.")
    ] = 100,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how the query would be run instead.")
    ] = False,
    at: At = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show the answer to a query in SQL; the table is called dataset in it."""
    snapshot = open_at(location(uri, options), at)
    asked = Query(snapshot, SqlRequest(text=query))
    if explain:
        stdout().print(asked.explain(), markup=False, highlight=False, soft_wrap=True)
        return
    print_rows(_first(asked.run(), rows), snapshot, output)


def _first(reader: pa.RecordBatchReader, count: int) -> pa.Table:
    """Read no more than is shown."""
    batches: list[pa.RecordBatch] = []
    while (left := count - sum(batch.num_rows for batch in batches)) > 0:
        try:
            batches.append(reader.read_next_batch().slice(0, left))
        except StopIteration:
            break
    reader.close()
    return pa.Table.from_batches(batches, schema=reader.schema)
