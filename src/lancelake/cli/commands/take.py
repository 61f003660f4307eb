"""`lancelake take`: show rows by position."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from lancelake.cli.at import open_at
from lancelake.cli.console import RowFormat
from lancelake.cli.options import (
    At,
    Columns,
    RowOutput,
    StorageOptions,
    Uri,
    column_names,
    location,
)
from lancelake.cli.row_view import print_rows
from lancelake.data.column_reader import RowOffsets
from lancelake.scan.request import ScanRequest
from lancelake.scan.take import take as take_rows

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_MOST = (1 << 64) - 1


@app.command()
def take(
    uri: Uri,
    rows: Annotated[
        str,
        typer.Argument(
            metavar="ROWS", show_default=False, help="Row positions from 0, such as 3,17,99."
        ),
    ],
    columns: Columns = None,
    at: At = None,
    options: StorageOptions = None,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """Show rows by position, in the order requested."""
    numbers = _numbers(rows)
    snapshot = open_at(location(uri, options), at)
    table = take_rows(snapshot, numbers, ScanRequest(columns=column_names(columns)))
    print_rows(table, snapshot, output)


def _numbers(text: str) -> RowOffsets:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) <= _MOST for part in parts):
        raise typer.BadParameter(
            f"{text!r} is not a list of row positions such as 3,17,99", param_hint="'ROWS'"
        )
    return np.array([int(part) for part in parts], dtype=np.uint64)
