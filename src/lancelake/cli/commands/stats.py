"""Show sizes of fragments, deleted rows and growth by version."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, print_json, stderr, stdout
from lancelake.cli.options import CommandModule, Output, Version, flag, option
from lancelake.cli.pictures import stats_png, stats_svg
from lancelake.cli.report import Listing, TextColumn, older_versions, right, version_body
from lancelake.core.values.descriptions import size_label

if TYPE_CHECKING:
    from lancelake.core.values.descriptions import GrowthPoint, SizeClass

commands = CommandModule()

_BAR = 30
_EIGHTHS = " ▏▎▍▌▋▊▉█"

Versions = Annotated[
    int, typer.Option("--versions", "-n", min=0, help="Number of the newest versions; 0 for all.")
]
Plot = Annotated[bool, flag("--plot", "Plot the numbers as bars.")]
Png = Annotated[Path | None, option("--png", "FILE", "Also write a PNG picture.")]
Svg = Annotated[Path | None, option("--svg", "FILE", "Also write an SVG picture.")]


@commands.add(example="photos.lance --versions 10")
def stats(
    version: Version,
    versions: Versions = 20,
    plot: Plot = False,
    png: Png = None,
    svg: Svg = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show sizes of fragments, deleted rows and growth by version."""
    table = version.open()
    classes = table.descriptions.size_classes()
    growth = table.descriptions.growth(versions or None)
    points = growth.points
    if png is not None:
        _write(png, stats_png(classes, points))
    if svg is not None:
        _write(svg, stats_svg(classes, points).encode())
    if output is OutputFormat.JSON:
        body = {
            "fragment_sizes": [asdict(each) for each in classes],
            "growth": [asdict(each) for each in points],
            "damaged_versions": list(growth.damaged),
            "truncated": bool(growth.older),
        }
        print_json({**version_body(table.snapshot), **body})
        return
    console = stdout()
    console.print(_sizes(classes, plot))
    console.print()
    console.print(_growth(points, plot))
    for number in growth.damaged:
        console.print(Text(f"version {number} cannot be read: run `lancelake check`", "red"))
    if growth.older:
        console.print(Text(older_versions(growth.older, "--versions"), style="dim"))


def _write(path: Path, picture: bytes) -> None:
    path.write_bytes(picture)
    stderr().print(f"picture written to {phrases.printable(str(path))}")


def _sizes(classes: tuple[SizeClass, ...], has_bars: bool) -> Listing:
    names = ("rows per fragment", "fragments", "rows", "deleted")
    bars = [TextColumn("fragments"), TextColumn("share deleted")] if has_bars else []
    listing = Listing([*map(right, names), *bars])
    most = max((each.fragments for each in classes), default=0)
    for each in classes:
        counts = (phrases.number(n) for n in (each.fragments, each.rows, each.deleted_rows))
        drawn = [
            Text(_bar(each.fragments, most, _BAR), "cyan"),
            Text(_bar(each.deleted_share, 1, _BAR), "red"),
        ]
        listing.add(size_label(each), *counts, *(drawn if has_bars else ()))
    return listing


def _growth(points: tuple[GrowthPoint, ...], has_bars: bool) -> Listing:
    numbers = [right("version"), TextColumn("operation"), right("rows"), right("size")]
    listing = Listing([*numbers, *([TextColumn("rows")] if has_bars else ())])
    most = max((point.rows for point in points), default=0)
    for point in points:
        drawn = Text(_bar(point.rows, most, _BAR), "cyan")
        listing.add(
            str(point.version),
            point.operation,
            phrases.number(point.rows),
            phrases.size(point.data_bytes),
            *((drawn,) if has_bars else ()),
        )
    return listing


def _bar(value: float, most: float, width: int) -> str:
    """Return a horizontal bar, in eighths of a character."""
    eighths = 0 if most <= 0 else round(value / most * width * 8)
    if value > 0:
        eighths = max(1, eighths)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
