"""Picture of a table's fragments by size and of its growth by version, as SVG or PNG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import assert_never

from lancelake.cli.png import Label, Rectangle, Shape, png
from lancelake.cli.svg import svg
from lancelake.table.describe.growth import GrowthPoint, SizeClass, size_label

_WIDTH, _PANEL, _MARGIN, _LEFT = 720, 320, 60, 90
_HEIGHT = 2 * _PANEL
_TICKS = 4
_MOST_LABELS = 12
_GREY, _BLUE, _RED, _BLACK = "#dddddd", "#0a7ea4", "#c0392b", "#000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bar:
    """A bar; the part of it from the bottom that `marked` states is red."""

    label: str
    value: int
    title: str
    marked: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """A bar chart whose upper edge is at `top`."""

    top: int
    title: str
    bars: Sequence[_Bar]

    @property
    def most(self) -> int:
        """The largest value, at least 1."""
        return max((bar.value for bar in self.bars), default=0) or 1

    def y(self, value: float) -> float:
        """Return the height of a value in the picture."""
        bottom = self.top + _PANEL - _MARGIN + 14
        return round(bottom - value / self.most * (_PANEL - 2 * _MARGIN), 1)


def stats_svg(classes: Sequence[SizeClass], points: Sequence[GrowthPoint]) -> str:
    """Draw a bar for the fragments of each size, and one for the rows of each version."""
    return svg(_WIDTH, _HEIGHT, map(_element, _shapes(classes, points)))


def stats_png(classes: Sequence[SizeClass], points: Sequence[GrowthPoint]) -> bytes:
    """Draw the same picture in pixels."""
    return png(_WIDTH, _HEIGHT, _shapes(classes, points))


def _shapes(classes: Sequence[SizeClass], points: Sequence[GrowthPoint]) -> Iterator[Shape]:
    for panel in (_sizes(classes), _growth(points)):
        yield from _axes(panel)
        yield from _bars(panel)


def _sizes(classes: Sequence[SizeClass]) -> _Panel:
    bars = [
        _Bar(
            label=size_label(each),
            value=each.fragments,
            title=f"{each.fragments:,} fragments, {each.deleted_rows:,} deleted rows",
            marked=each.deleted_share,
        )
        for each in classes
    ]
    return _Panel(top=0, title="fragments by rows, share of deleted rows in red", bars=bars)


def _growth(points: Sequence[GrowthPoint]) -> _Panel:
    bars = [
        _Bar(
            label=str(point.version),
            value=point.rows,
            title=f"version {point.version}: {point.rows:,} rows",
        )
        for point in points
    ]
    return _Panel(top=_PANEL, title="rows by version", bars=bars)


def _axes(panel: _Panel) -> Iterator[Shape]:
    for tick in range(_TICKS + 1):
        value = panel.most * tick / _TICKS
        y = panel.y(value)
        width = _WIDTH - 20 - _LEFT
        yield Rectangle(x=_LEFT, y=y, width=width, height=1, color=_GREY)
        label = f"{value:,.0f}" if value == int(value) else ""
        yield Label(x=_LEFT - 8, y=y + 4, text=label, anchor="end", color=_BLACK)
    yield Label(x=_LEFT, y=panel.top + 24, text=panel.title, anchor="start", color=_BLACK)


def _bars(panel: _Panel) -> Iterator[Shape]:
    step = (_WIDTH - 20 - _LEFT) / max(1, len(panel.bars))
    every = max(1, len(panel.bars) // _MOST_LABELS)
    for i, bar in enumerate(panel.bars):
        x, width = round(_LEFT + i * step + step * 0.1, 1), round(step * 0.8, 1)
        edges = (panel.y(bar.value), panel.y(bar.value * bar.marked), panel.y(0))
        for color, top, bottom in ((_BLUE, edges[0], edges[1]), (_RED, edges[1], edges[2])):
            if bottom > top:
                height = round(bottom - top, 1)
                yield Rectangle(
                    x=x, y=top, width=width, height=height, color=color, title=bar.title
                )
        if i % every == 0:
            middle, y = round(x + step * 0.4, 1), panel.top + _PANEL - _MARGIN + 32
            yield Label(x=middle, y=y, text=bar.label, anchor="middle", color=_BLACK)


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
                f'fill="{shape.color}">{escape(shape.text)}</text>'
            )
        case _:
            assert_never(shape)
