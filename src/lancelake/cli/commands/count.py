"""`lancelake count`: count rows."""

from __future__ import annotations

import typer

from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import At, Filter, NoIndex, Output, StorageOptions, Uri, location
from lancelake.scan import stream
from lancelake.scan.count import count_rows
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def count(
    uri: Uri,
    filter: Filter = None,
    no_index: NoIndex = False,
    at: At = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Count the rows, or those that match a filter."""
    snapshot = open_at(location(uri, options), at)
    if filter is None:
        rows = count_rows(snapshot)
    else:
        request = ScanRequest(columns=(), filter=filter, use_scalar_index=not no_index)
        rows = stream.count(plan(snapshot, request))
    if output is OutputFormat.JSON:
        print_json({"version": snapshot.version, "filter": filter, "rows": rows})
    else:
        stdout().print(str(rows))
