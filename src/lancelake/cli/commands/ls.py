"""List the tables below a folder, with rows, size and version."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import RowFormat
from lancelake.cli.options import CommandModule, RowOutput, StorageOptions
from lancelake.cli.report import Listing, cut, print_listing, report_list, right
from lancelake.cli.tables import place_of
from lancelake.core.table_place import TablePlace
from lancelake.errors import NotFoundError
from lancelake.threads import Pool

if TYPE_CHECKING:
    from lancelake.core.values.descriptions import Json

commands = CommandModule()

_THREADS = 8
_MOST = 1000

Folder = Annotated[
    str, typer.Argument(metavar="FOLDER", help="Folder, or a prefix in an object store.")
]


@commands.add(example=".")
def list_tables(
    folder: Folder = ".", options: StorageOptions = None, output: RowOutput = RowFormat.TABLE
) -> None:
    """List the tables below a folder, with rows, size and version."""
    place = place_of(folder, options)
    search = place.find_tables(_MOST)
    root = place.location.uri
    if not search.tables:
        raise NotFoundError("there are no Lance tables below this folder", path=root)
    with Pool(_THREADS) as pool:
        tables = list(pool.map(lambda each: TablePlace(each).table_facts(), search.tables))
    more = "" if search.is_complete else "not all folders were searched, name a smaller one"
    if output is not RowFormat.TABLE:
        body = {"uri": root, "tables": tables, "truncated": not search.is_complete}
        report_list(output, body, tables, more)
        return
    names = (right("rows"), right("size"), right("version"), right("written"), right("indices"))
    listing = Listing([cut("table"), *names])
    now_ns = place.location.session.clock.now_ns()
    for table in tables:
        name = table["uri"].removeprefix(root).lstrip("/") or table["uri"]
        listing.add(Text(phrases.printable(name), style="bold"), *_cells(table, now_ns))
    amount = phrases.plural(len(tables), "table")
    print_listing(listing, f"{amount}; {more}" if more else amount)


def _cells(table: Json, now_ns: int) -> list[Text]:
    if table["error"] is not None:
        damage = Text(phrases.shorten(phrases.printable(table["error"]), 60), style="red")
        return [damage, *(Text() for _ in range(4))]
    written = table["written_at"]
    when = ""
    if written is not None:
        written_ns = int(datetime.fromisoformat(written).timestamp()) * 1_000_000_000
        when = phrases.age(written_ns, now_ns, is_short=True)
    counts = [
        phrases.number(table["rows"]),
        phrases.size(table["data_bytes"]),
        str(table["version"]),
    ]
    return [*map(Text, counts), Text(when, style="dim"), Text(str(table["indices"] or ""))]
