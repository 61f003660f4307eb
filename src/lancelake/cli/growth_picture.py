"""Picture of the growth of a table, rows by version, as SVG or PNG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lancelake.cli.png import Label, Rectangle, Shape, png
from lancelake.table.describe.growth import GrowthPoint

_WIDTH, _HEIGHT, _MARGIN = 720, 320, 60
_TICKS = 4
_MOST_LABELS = 12
_GREY, _BLUE, _BLACK = "#dddddd", "#0a7ea4", "#000000"


def growth_svg(points: Sequence[GrowthPoint]) -> str:
    """Draw a bar for the rows of each version."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            *map(_element, _shapes(points)),
            "</svg>",
            "",
        ]
    )


def growth_png(points: Sequence[GrowthPoint]) -> bytes:
    """Draw the same picture in pixels."""
    return png(_WIDTH, _HEIGHT, _shapes(points))


def _shapes(points: Sequence[GrowthPoint]) -> Iterator[Shape]:
    yield from _axes(points)
    yield from _bars(points)


def _axes(points: Sequence[GrowthPoint]) -> Iterator[Shape]:
    most = _most(points)
    for tick in range(_TICKS + 1):
        y = _y(most * tick / _TICKS, most)
        width = _WIDTH - 20 - _MARGIN
        yield Rectangle(x=_MARGIN, y=y, width=width, height=1, color=_GREY)
        label = f"{most * tick / _TICKS:,.0f}"
        yield Label(x=_MARGIN - 8, y=y + 4, text=label, anchor="end", color=_BLACK)
    yield Label(x=_MARGIN, y=24, text="rows by version", anchor="start", color=_BLACK)


def _bars(points: Sequence[GrowthPoint]) -> Iterator[Shape]:
    most = _most(points)
    step = (_WIDTH - 20 - _MARGIN) / max(1, len(points))
    every = max(1, len(points) // _MOST_LABELS)
    for i, point in enumerate(points):
        x, y = round(_MARGIN + i * step + step * 0.1, 1), _y(point.rows, most)
        yield Rectangle(
            x=x,
            y=y,
            width=round(step * 0.8, 1),
            height=round(_y(0, most) - y, 1),
            color=_BLUE,
            title=f"version {point.version}: {point.rows:,} rows",
        )
        if i % every == 0:
            middle, bottom = round(x + step * 0.4, 1), _HEIGHT - _MARGIN + 32
            text = str(point.version)
            yield Label(x=middle, y=bottom, text=text, anchor="middle", color=_BLACK)


def _element(shape: Shape) -> str:
    match shape:
        case Rectangle():
            title = f"<title>{shape.title}</title>" if shape.title else ""
            return (
                f'<rect x="{shape.x}" y="{shape.y}" width="{shape.width}" height="{shape.height}" '
                f'fill="{shape.color}">{title}</rect>'
            )
        case Label():
            return (
                f'<text x="{shape.x}" y="{shape.y}" text-anchor="{shape.anchor}" '
                f'fill="{shape.color}">{shape.text}</text>'
            )


def _most(points: Sequence[GrowthPoint]) -> int:
    return max((point.rows for point in points), default=0) or 1


def _y(rows: float, most: int) -> float:
    return round(_HEIGHT - _MARGIN + 14 - rows / most * (_HEIGHT - 2 * _MARGIN), 1)
