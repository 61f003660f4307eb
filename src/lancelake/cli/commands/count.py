"""`lancelake count`: count rows."""

from __future__ import annotations

import typer

from lancelake.cli.at import open_at
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import At, Filter, NoIndex, Output, StorageOptions, Uri, location
from lancelake.commit.snapshot import Snapshot
from lancelake.scan.count import count_rows

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
    rows = count_rows(snapshot) if filter is None else _matching(snapshot, filter, not no_index)
    if output is OutputFormat.JSON:
        print_json({"version": snapshot.version, "filter": filter, "rows": rows})
    else:
        stdout().print(str(rows))


def _matching(snapshot: Snapshot, filter: str, use_index: bool) -> int:
    # The manifest has the number of all rows: most counts need no scan, which is slow to load.
    from lancelake.scan import stream  # noqa: PLC0415
    from lancelake.scan.planner import plan  # noqa: PLC0415
    from lancelake.scan.request import ScanRequest  # noqa: PLC0415

    request = ScanRequest(columns=(), filter=filter, use_scalar_index=use_index)
    return stream.count(plan(snapshot, request))
