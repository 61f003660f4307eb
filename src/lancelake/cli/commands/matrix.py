"""Show which operations conflict if they run at the same time."""

from __future__ import annotations

from typing import Annotated, Any

from rich.text import Text

from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.options import CommandModule, Output, argument
from lancelake.cli.report import Listing, TextColumn, cut, print_listing, right
from lancelake.core.values.writes import Cell, PairOutcome, matrix
from lancelake.errors import NotFoundError

commands = CommandModule()

_STYLES = {PairOutcome.OK: "dim", PairOutcome.RETRY: "yellow", PairOutcome.REFUSED: "red"}
_MEANINGS = {
    PairOutcome.OK: (
        "both are kept: mine is committed on top of theirs, unless both changed the same row"
    ),
    PairOutcome.RETRY: "mine must be retried on the newest version",
    PairOutcome.REFUSED: "mine is incompatible with theirs; the user has to resolve it",
}

Mine = Annotated[str | None, argument("MINE", "Show only this operation, with reasons.")]
Theirs = Annotated[
    str | None, argument("THEIRS", "Show only conflicts with this operation, with examples.")
]


@commands.add(example="")
def matrix_command(
    mine: Mine = None, theirs: Theirs = None, output: Output = OutputFormat.TABLE
) -> None:
    """Show which operations conflict if they run at the same time.

    Mine was prepared on a version that is no longer the newest, since theirs was committed first.
    """
    rows = matrix()
    cells = [cell for row in rows for cell in row if _is_meant(cell, mine, theirs)]
    if not cells:
        names = ", ".join(row[0].mine.__name__ for row in rows)
        problem = f"unknown operation {' or '.join(n for n in (mine, theirs) if n)}"
        raise NotFoundError(problem, action=f"Valid operations: {names}.")
    if output is OutputFormat.JSON:
        print_json({"meanings": _meanings(), "cells": [_document(cell) for cell in cells]})
        return
    console = stdout()
    if mine is None:
        print_listing(_grid(rows))
    elif theirs is None:
        print_listing(_row(cells))
    else:
        print_listing(_cases(cells[0]))
    console.print()
    for outcome in PairOutcome:
        console.print(_mark(outcome.value) + Text(f"  {_MEANINGS[outcome]}", style="dim"))


def _is_meant(cell: Cell, mine: str | None, theirs: str | None) -> bool:
    pairs = ((mine, cell.mine), (theirs, cell.theirs))
    return all(name is None or name.lower() == kind.__name__.lower() for name, kind in pairs)


def _grid(rows: tuple[tuple[Cell, ...], ...]) -> Listing:
    """Return all pairs; columns are numbered like the rows."""
    numbers = [right(str(i)) for i in range(1, len(rows) + 1)]
    listing = Listing([right(""), TextColumn("mine \\ theirs"), *numbers])
    for number, row in enumerate(rows, start=1):
        marks = [_mark(cell.mark) for cell in row]
        listing.add(Text(str(number), style="dim"), row[0].mine.__name__, *marks)
    return listing


def _row(cells: list[Cell]) -> Listing:
    listing = Listing([TextColumn("mine"), TextColumn("theirs"), TextColumn("outcome"), cut("why")])
    for cell in cells:
        why = [condition.partition(": ")[2] for condition in cell.conditions]
        names = (cell.mine.__name__, cell.theirs.__name__)
        listing.add(*names, _mark(cell.mark), Text("; ".join(why), style="dim"))
    return listing


def _cases(cell: Cell) -> Listing:
    heads = (cell.mine.__name__, cell.theirs.__name__)
    listing = Listing(
        [cut(f"my {heads[0]}"), cut(f"their {heads[1]}"), TextColumn("outcome"), cut("why")]
    )
    for case in cell.cases:
        listing.add(case.mine, case.theirs, _mark(case.outcome.value), Text(case.reason, "dim"))
    return listing


def _mark(text: str) -> Text:
    return Text().join(Text(letter, style=_STYLES[PairOutcome(letter)]) for letter in text)


def _meanings() -> dict[str, str]:
    return {outcome.name.lower(): _MEANINGS[outcome] for outcome in PairOutcome}


def _document(cell: Cell) -> dict[str, Any]:  # JSON
    return {
        "mine": cell.mine.__name__,
        "theirs": cell.theirs.__name__,
        "outcomes": [o.name.lower() for o in PairOutcome if o in cell.outcomes],
        "cases": [
            {
                "mine": case.mine,
                "theirs": case.theirs,
                "outcome": case.outcome.name.lower(),
                "reason": case.reason or None,
            }
            for case in cell.cases
        ],
    }
