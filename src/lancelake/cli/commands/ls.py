"""`lancelake ls`: list the tables below a folder."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.console import RowFormat, stdout
from lancelake.cli.options import RowOutput, StorageOptions, location
from lancelake.cli.report import report_list
from lancelake.cli.tables import Listing, cut, right
from lancelake.clock import SystemClock
from lancelake.errors import NotFoundError
from lancelake.table.describe.documents import Json
from lancelake.table.describe.found_tables import find_tables, table_facts

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_THREADS = 8
_MOST = 1000

Folder = Annotated[
    str,
    typer.Argument(metavar="FOLDER", help="Folder, or a prefix in an object store."),
]


@app.command("ls")
def list_tables(
    folder: Folder = ".",
    options: StorageOptions = None,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """List the tables below a folder, with rows, size and version."""
    root = location(folder, options)
    found = find_tables(root, _MOST)
    if not found.tables:
        raise NotFoundError("there are no Lance tables below this folder", path=root.uri)
    with ThreadPoolExecutor(_THREADS) as pool:
        tables = list(pool.map(table_facts, found.tables))
    more = "" if found.is_complete else "not all folders were searched, name a smaller one"
    if output is not RowFormat.TABLE:
        body = {"uri": root.uri, "tables": tables, "truncated": not found.is_complete}
        report_list(output, body, tables, more)
        return
    names = (right("rows"), right("size"), right("version"), right("written"), right("indices"))
    listing = Listing([cut("table"), *names])
    now_ns = SystemClock().now_ns()
    for table in tables:
        name = table["uri"].removeprefix(root.uri).lstrip("/") or table["uri"]
        listing.add(Text(words.printable(name), style="bold"), *_cells(table, now_ns))
    console = stdout()
    console.print(listing)
    amount = words.plural(len(tables), "table")
    console.print(Text(f"{amount}; {more}" if more else amount, style="dim"))


def _cells(table: Json, now_ns: int) -> list[Text]:
    if table["error"] is not None:
        damage = Text(words.shortened(words.printable(table["error"]), 60), style="red")
        return [damage, *(Text() for _ in range(4))]
    written = table["written_at"]
    when = ""
    if written is not None:
        written_ns = int(datetime.fromisoformat(written).timestamp()) * 1_000_000_000
        when = words.age(written_ns, now_ns, is_short=True)
    counts = [words.number(table["rows"]), words.size(table["data_bytes"]), str(table["version"])]
    return [*map(Text, counts), Text(when, style="dim"), Text(str(table["indices"] or ""))]
