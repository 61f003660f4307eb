"""Show nulls, distinct values, bounds and distribution of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from lancelake.cli import phrases, report
from lancelake.cli.console import RowFormat, row_bar
from lancelake.cli.options import Columns, CommandModule, Filter, RowOutput, Version, column_names
from lancelake.cli.rows import to_cell
from lancelake.core.values.descriptions import profile_columns, to_json
from lancelake.core.values.reads import ScanRequest

if TYPE_CHECKING:
    from lancelake.core.values.descriptions import ColumnProfile, Json

commands = CommandModule()

_WIDTH = 24
_BLOCKS = "▁▂▃▄▅▆▇█"


@commands.add(example="photos.lance -c id")
def profile(
    version: Version,
    columns: Columns = None,
    filter: Filter = None,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """Show nulls, distinct values, bounds and distribution of columns.

    The table is read once. Distinct values are estimated, within about 2 %. The distribution shows
    values; for text and lists, lengths.
    """
    table = version.open()
    request = ScanRequest(columns=column_names(columns), filter=filter)
    with table.scan(request).run() as rows, row_bar() as bar:
        profiles = profile_columns(bar.count(rows), rows.schema)
    if output is not RowFormat.TABLE:
        items = [_document(column) for column in profiles]
        body = {**report.version_body(table.snapshot), "rows": bar.rows, "columns": items}
        report.report_list(output, body, items)
        return
    numbers = map(report.right, ("nulls", "distinct", "min", "max"))
    listing = report.Listing(
        [report.cut("column"), report.cut("type"), *numbers, report.TextColumn("distribution")]
    )
    for column in profiles:
        bounds = [_bound(value) for value in (column.minimum, column.maximum)]
        listing.add(
            phrases.printable(column.name),
            Text(str(column.type), "green"),
            _share(column.nulls, column.rows),
            "" if column.distinct is None else phrases.number(column.distinct),
            *bounds,
            Text(_sparkline(column.histogram or ()), "cyan"),
        )
    report.print_listing(listing, phrases.plural(bar.rows, "row"))


def _share(part: int, whole: int) -> str:
    return f"{phrases.number(part)} ({part / whole:.1%})" if part else "0"


def _sparkline(counts: Sequence[int]) -> str:
    """Return one block for each count; zero is a blank."""
    most = max(counts, default=0)
    top = len(_BLOCKS) - 1
    return "".join(" " if not c else _BLOCKS[max(0, round(c / most * top))] for c in counts)


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
