"""`lancelake profile`: nulls, distinct values, bounds and distribution of columns."""

from __future__ import annotations

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.arrow_values import to_cell
from lancelake.cli.at import open_at
from lancelake.cli.bars import sparkline
from lancelake.cli.console import RowFormat, stdout
from lancelake.cli.job_bar import row_bar
from lancelake.cli.options import (
    At,
    Columns,
    Filter,
    RowOutput,
    StorageOptions,
    Uri,
    column_names,
    location,
)
from lancelake.cli.report import report_list, version_body
from lancelake.cli.tables import Listing, TextColumn, cut, right
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run
from lancelake.table.describe.arrow_json import Json, to_json
from lancelake.table.describe.profile import ColumnProfile
from lancelake.table.describe.profile import profile as profile_of

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_WIDTH = 24


@app.command()
def profile(
    uri: Uri,
    columns: Columns = None,
    filter: Filter = None,
    at: At = None,
    options: StorageOptions = None,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """Show nulls, distinct values, bounds and distribution of columns.

    The table is read once. Distinct values are estimated, within about 2 %. The distribution shows
    values; for text and lists, lengths.
    """
    snapshot = open_at(location(uri, options), at)
    request = ScanRequest(columns=column_names(columns), filter=filter)
    with run(plan(snapshot, request)) as rows, row_bar() as bar:
        found = profile_of(bar.counted(rows), rows.schema)
    if output is not RowFormat.TABLE:
        items = [_document(column) for column in found]
        report_list(output, {**version_body(snapshot), "rows": bar.rows, "columns": items}, items)
        return
    table = Listing(
        [
            cut("column"),
            cut("type"),
            right("nulls"),
            right("distinct"),
            right("min"),
            right("max"),
            TextColumn("distribution"),
        ]
    )
    for column in found:
        bounds = [_bound(value) for value in (column.minimum, column.maximum)]
        table.add(
            words.printable(column.name),
            Text(str(column.type), "green"),
            _share(column.nulls, column.rows),
            "" if column.distinct is None else words.number(column.distinct),
            *bounds,
            Text(sparkline(column.histogram or ()), "cyan"),
        )
    console = stdout()
    console.print(table)
    console.print(Text(words.plural(bar.rows, "row"), style="dim"))


def _share(part: int, whole: int) -> str:
    return f"{words.number(part)} ({part / whole:.1%})" if part else "0"


def _bound(value: object) -> Text:
    if value is None:
        return Text()
    cell = to_cell(value)
    cell.truncate(_WIDTH, overflow="ellipsis")
    return cell


def _document(column: ColumnProfile) -> Json:
    return {
        "name": column.name,
        "type": str(column.type),
        "nulls": column.nulls,
        "distinct_estimate": column.distinct,
        "minimum": None if column.minimum is None else to_json(column.minimum),
        "maximum": None if column.maximum is None else to_json(column.maximum),
        "histogram": None if column.histogram is None else list(column.histogram),
    }
