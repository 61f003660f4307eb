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
from lancelake.cli.options import At, Output, StorageOptions, Uri, location
from lancelake.cli.report import older_versions, version_body
from lancelake.cli.stats_picture import stats_png, stats_svg
from lancelake.cli.tables import Listing, TextColumn, right
from lancelake.table.describe.growth import (
    GrowthPoint,
    SizeClass,
    growth,
    size_classes,
    size_label,
)

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_BAR = 30

Versions = Annotated[
    int, typer.Option("--versions", "-n", min=0, help="Number of the newest versions; 0 for all.")
]
Plot = Annotated[bool, typer.Option("--plot", help="Plot the numbers as bars.")]
Png = Annotated[
    Path | None,
    typer.Option("--png", metavar="FILE", show_default=False, help="Also write a PNG picture."),
]
Svg = Annotated[
    Path | None,
    typer.Option("--svg", metavar="FILE", show_default=False, help="Also write an SVG picture."),
]


@app.command()
def stats(
    uri: Uri,
    versions: Versions = 20,
    plot: Plot = False,
    png: Png = None,
    svg: Svg = None,
    at: At = None,
    options: StorageOptions = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show sizes of fragments, deleted rows and growth by version."""
    snapshot = open_at(location(uri, options), at)
    classes, grown = size_classes(snapshot), growth(snapshot, versions or None)
    points = grown.points
    if png is not None:
        _keep(png, stats_png(classes, points))
    if svg is not None:
        _keep(svg, stats_svg(classes, points).encode())
    if output is OutputFormat.JSON:
        body = {
            "fragment_sizes": [asdict(each) for each in classes],
            "growth": [asdict(each) for each in points],
            "damaged_versions": list(grown.damaged),
            "truncated": bool(grown.older),
        }
        print_json({**version_body(snapshot), **body})
        return
    console = stdout()
    console.print(_sizes(classes, plot))
    console.print()
    console.print(_growth(points, plot))
    for version in grown.damaged:
        console.print(Text(f"version {version} cannot be read: run `lancelake check`", "red"))
    if grown.older:
        console.print(Text(older_versions(grown.older, "--versions"), style="dim"))


def _keep(path: Path, picture: bytes) -> None:
    path.write_bytes(picture)
    stderr().print(f"picture written to {words.printable(str(path))}")


def _sizes(classes: tuple[SizeClass, ...], has_bars: bool) -> Listing:
    names = ("rows per fragment", "fragments", "rows", "deleted")
    bars = [TextColumn("fragments"), TextColumn("share deleted")] if has_bars else []
    table = Listing([*map(right, names), *bars])
    most = max((each.fragments for each in classes), default=0)
    for each in classes:
        counts = (words.number(n) for n in (each.fragments, each.rows, each.deleted_rows))
        drawn = [
            Text(bar(each.fragments, most, _BAR), "cyan"),
            Text(bar(each.deleted_share, 1, _BAR), "red"),
        ]
        table.add(size_label(each), *counts, *(drawn if has_bars else ()))
    return table


def _growth(points: tuple[GrowthPoint, ...], has_bars: bool) -> Listing:
    numbers = [right("version"), TextColumn("operation"), right("rows"), right("size")]
    table = Listing([*numbers, *([TextColumn("rows")] if has_bars else ())])
    most = max((point.rows for point in points), default=0)
    for point in points:
        drawn = Text(bar(point.rows, most, _BAR), "cyan")
        table.add(
            str(point.version),
            point.operation,
            words.number(point.rows),
            words.size(point.data_bytes),
            *((drawn,) if has_bars else ()),
        )
    return table
