"""`lancelake stats`: sizes of fragments, deleted rows and growth by version."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.at import open_at
from lancelake.cli.bars import bar
from lancelake.cli.console import OutputFormat, print_json, stderr, stdout
from lancelake.cli.growth_picture import growth_png, growth_svg
from lancelake.cli.options import At, Output, StorageOptions, Uri, location
from lancelake.cli.report import version_body
from lancelake.cli.tables import Listing, TextColumn, right
from lancelake.table.describe.growth import GrowthPoint, SizeClass, growth, size_classes

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_BAR = 30

Versions = Annotated[
    int, typer.Option("--versions", "-n", min=1, help="Number of the newest versions to show.")
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        show_default=False,
        help="Also plot the growth as an SVG file.",
    ),
]
Png = Annotated[
    Path | None,
    typer.Option(
        "--png", metavar="FILE", show_default=False, help="Also plot the growth as a PNG file."
    ),
]


@app.command()
def stats(
    uri: Uri,
    versions: Versions = 20,
    plot: Plot = None,
    png: Png = None,
    at: At = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show sizes of fragments, deleted rows and growth by version."""
    snapshot = open_at(location(uri, options), at)
    classes, points = size_classes(snapshot), growth(snapshot, versions)
    if plot is not None:
        _keep(plot, growth_svg(points).encode())
    if png is not None:
        _keep(png, growth_png(points))
    if output is OutputFormat.JSON:
        body = {
            "fragment_sizes": [asdict(each) for each in classes],
            "growth": [asdict(each) for each in points],
        }
        print_json({**version_body(snapshot), **body})
        return
    console = stdout()
    console.print(_sizes(classes))
    console.print()
    console.print(_growth(points))


def _keep(path: Path, picture: bytes) -> None:
    path.write_bytes(picture)
    stderr().print(f"plot written to {words.printable(str(path))}")


def _sizes(classes: tuple[SizeClass, ...]) -> Listing:
    names = ("rows per fragment", "fragments", "rows", "deleted")
    table = Listing([*map(right, names), TextColumn("")])
    most = max((each.fragments for each in classes), default=0)
    for each in classes:
        label = "larger" if each.below is None else f"< {each.below:,}"
        counts = (words.number(n) for n in (each.fragments, each.rows, each.deleted_rows))
        table.add(label, *counts, Text(bar(each.fragments, most, _BAR), "cyan"))
    return table


def _growth(points: tuple[GrowthPoint, ...]) -> Listing:
    table = Listing(
        [right("version"), TextColumn("operation"), right("rows"), right("size"), TextColumn("")]
    )
    most = max((point.rows for point in points), default=0)
    for point in points:
        table.add(
            str(point.version),
            point.operation,
            words.number(point.rows),
            words.size(point.data_bytes),
            Text(bar(point.rows, most, _BAR), "cyan"),
        )
    return table
