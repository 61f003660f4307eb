"""Show rows by position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from lancelake.cli.console import RowFormat
from lancelake.cli.options import Columns, CommandModule, RowOutput, Version, argument, column_names
from lancelake.cli.rows import print_rows
from lancelake.core.values.reads import ScanRequest

if TYPE_CHECKING:
    from lancelake.core.values.reads import RowOffsets

commands = CommandModule()

_MOST = (1 << 64) - 1


@commands.add(example="photos.lance 0,2")
def take(
    version: Version,
    rows: Annotated[str, argument("ROWS", "Row positions from 0, such as 3,17,99.")],
    columns: Columns = None,
    output: RowOutput = RowFormat.TABLE,
) -> None:
    """Show rows by position, in the order requested."""
    numbers = _numbers(rows)
    table = version.open()
    result = table.take(numbers, ScanRequest(columns=column_names(columns)))
    print_rows(result, table.snapshot, output)


def _numbers(text: str) -> RowOffsets:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) <= _MOST for part in parts):
        raise typer.BadParameter(
            f"{text!r} is not a list of row positions such as 3,17,99", param_hint="'ROWS'"
        )
    return np.array([int(part) for part in parts], dtype=np.uint64)
