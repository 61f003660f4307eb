"""Show recall against latency: as a table with bars, as JSON, or as a plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from rich.text import Text

from lancelake.cli import words
from lancelake.cli.console import OutputFormat, print_json, stdout
from lancelake.cli.report import version_body
from lancelake.cli.svg import svg
from lancelake.cli.tables import Listing, TextColumn, right
from lancelake.commit.snapshot import Snapshot
from lancelake.scan.search.recall import Recall, RecallPoint, RecallRequest

_BAR = 30
_WIDTH, _HEIGHT, _MARGIN = 640, 400, 60
_TICKS = 5


def probe_counts(text: str) -> tuple[int, ...]:
    """Parse numbers separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) for part in parts):
        problem = f"{text!r} is not a list of numbers such as 1,5,20"
        raise typer.BadParameter(problem, param_hint="'--nprobes'")
    return tuple(int(part) for part in parts)


def svg_file(path: Path | None) -> Path | None:
    """Return the file of a plot; refuse one that cannot be written, before the measurement."""
    if path is None:
        return None
    if path.suffix.lower() != ".svg":
        raise typer.BadParameter(f"{path.name!r} is not the name of an SVG file")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(path.parent)!r}")
    return path


def print_recall(
    snapshot: Snapshot, request: RecallRequest, measured: Recall, output: OutputFormat
) -> None:
    """Print a measurement, exact search as the last line."""
    if output is OutputFormat.JSON:
        facts = {"column": request.column, "k": request.k, "queries": measured.queries}
        listed = [asdict(point) for point in measured.points]
        print_json({**version_body(snapshot), **facts, "points": listed})
        return
    table = Listing(
        [
            right("nprobes"),
            right(f"recall@{request.k}"),
            right("median"),
            right("95 %"),
            TextColumn("recall"),
        ]
    )
    for point in measured.points:
        bar = Text("█" * round(point.recall * _BAR), style="cyan")
        latencies = f"{point.median_ms:.1f} ms", f"{point.slow_ms:.1f} ms"
        table.add(_label(point), f"{point.recall:.3f}", *latencies, bar)
    console = stdout()
    console.print(table)
    note = f"{measured.queries} queries of column {words.printable(request.column)}"
    console.print(Text(note, style="dim"))


def recall_picture(points: Sequence[RecallPoint], k: int) -> str:
    """Draw recall against median latency as SVG, with a label for each number of probes."""
    top = max(point.median_ms for point in points) * 1.1 or 1.0
    low = min(0.9, *(point.recall for point in points))
    low = max(0.0, low - 0.05)
    return svg(_WIDTH, _HEIGHT, [*_axes(top, low, k), *_curve(points, top, low)])


def _axes(top: float, low: float, k: int) -> Iterator[str]:
    for tick in range(_TICKS + 1):
        share = tick / _TICKS
        x, y = _place(share * top, low + share * (1 - low), top, low)
        yield f'<line x1="{_MARGIN}" x2="{_WIDTH - _MARGIN}" y1="{y}" y2="{y}" stroke="#ddd"/>'
        text = f"{low + share * (1 - low):.2f}"
        yield f'<text x="{_MARGIN - 8}" y="{y + 4}" text-anchor="end">{text}</text>'
        bottom = _HEIGHT - _MARGIN + 18
        yield f'<text x="{x}" y="{bottom}" text-anchor="middle">{share * top:.1f}</text>'
    middle, bottom = _WIDTH / 2, _HEIGHT - 15
    yield f'<text x="{middle}" y="{bottom}" text-anchor="middle">median latency in ms</text>'
    yield f'<text x="{_MARGIN}" y="{_MARGIN / 2}">recall@{k}</text>'


def _curve(points: Sequence[RecallPoint], top: float, low: float) -> Iterator[str]:
    probed = [p for p in points if p.nprobes is not None]
    places = [_place(p.median_ms, p.recall, top, low) for p in probed]
    line = " ".join(f"{x},{y}" for x, y in places)
    yield f'<polyline points="{line}" fill="none" stroke="#0a7ea4" stroke-width="2"/>'
    for point in points:
        x, y = _place(point.median_ms, point.recall, top, low)
        colour = "#c2410c" if point.nprobes is None else "#0a7ea4"
        yield f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>'
        yield f'<text x="{x + 6}" y="{y - 6}">{_label(point)}</text>'


def _place(latency: float, recall: float, top: float, low: float) -> tuple[float, float]:
    x = _MARGIN + latency / top * (_WIDTH - 2 * _MARGIN)
    y = _HEIGHT - _MARGIN - (recall - low) / (1 - low) * (_HEIGHT - 2 * _MARGIN)
    return round(x, 1), round(y, 1)


def _label(point: RecallPoint) -> str:
    return "exact" if point.nprobes is None else str(point.nprobes)
