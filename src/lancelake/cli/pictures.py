"""Pictures of a table: sizes and growth as SVG and PNG, recall against latency as SVG."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

import numpy as np

from lancelake.core.values.descriptions import size_label

if TYPE_CHECKING:
    from lancelake.core.values.descriptions import GrowthPoint, SizeClass
    from lancelake.core.values.reads import RecallPoint

# Pixels for each unit of a picture, so that it is sharp on dense screens.
_SCALE = 2
_GLYPH_HEIGHT, _GLYPH_WIDTH, _GAP = 7, 5, 1
# Each row of a glyph is a number whose lowest five bits are its pixels, from left to right.
_GLYPHS = {
    "0": (14, 17, 19, 21, 25, 17, 14),
    "1": (4, 12, 4, 4, 4, 4, 14),
    "2": (14, 17, 1, 2, 4, 8, 31),
    "3": (31, 2, 4, 2, 1, 17, 14),
    "4": (2, 6, 10, 18, 31, 2, 2),
    "5": (31, 16, 30, 1, 1, 17, 14),
    "6": (6, 8, 16, 30, 17, 17, 14),
    "7": (31, 1, 2, 4, 8, 8, 8),
    "8": (14, 17, 17, 14, 17, 17, 14),
    "9": (14, 17, 17, 15, 1, 2, 12),
    ",": (0, 0, 0, 0, 12, 4, 8),
    "<": (2, 4, 8, 16, 8, 4, 2),
    "a": (0, 0, 14, 1, 15, 17, 15),
    "b": (16, 16, 22, 25, 17, 17, 30),
    "d": (1, 1, 13, 19, 17, 17, 15),
    "e": (0, 0, 14, 17, 31, 16, 14),
    "f": (6, 9, 8, 28, 8, 8, 8),
    "g": (0, 15, 17, 17, 15, 1, 14),
    "h": (16, 16, 22, 25, 17, 17, 17),
    "i": (4, 0, 12, 4, 4, 4, 14),
    "l": (12, 4, 4, 4, 4, 4, 14),
    "m": (0, 0, 26, 21, 21, 17, 17),
    "n": (0, 0, 22, 25, 17, 17, 17),
    "o": (0, 0, 14, 17, 17, 17, 14),
    "r": (0, 0, 22, 25, 16, 16, 16),
    "s": (0, 0, 14, 16, 14, 1, 30),
    "t": (8, 8, 28, 8, 8, 9, 6),
    "v": (0, 0, 17, 17, 17, 10, 4),
    "w": (0, 0, 17, 17, 21, 21, 10),
    "y": (0, 0, 17, 17, 15, 1, 14),
    " ": (0, 0, 0, 0, 0, 0, 0),
}


_WIDTH, _PANEL, _MARGIN, _LEFT = 720, 320, 60, 90
_TICKS = 4
_MOST_LABELS = 12
_GREY, _BLUE, _RED, _BLACK = "#dddddd", "#0a7ea4", "#c0392b", "#000000"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rectangle:
    """A filled rectangle; `title` is shown by formats that have tooltips."""

    x: float
    y: float
    width: float
    height: float
    color: str
    title: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """A line of black text at a baseline."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar; `share` is the part of it that is red, from the bottom."""

    label: str
    value: int
    title: str
    share: float = 0.0


def stats_svg(classes: Sequence[SizeClass], points: Sequence[GrowthPoint]) -> str:
    """Draw a bar for the fragments of each size, and one for the rows of each version."""
    return _svg(_WIDTH, 2 * _PANEL, map(_element, _stats(classes, points)))


def stats_png(classes: Sequence[SizeClass], points: Sequence[GrowthPoint]) -> bytes:
    """Draw the same picture in pixels; characters without a glyph are blank."""
    pixels = np.full((2 * _PANEL * _SCALE, _WIDTH * _SCALE, 3), 255, np.uint8)
    for shape in _stats(classes, points):
        for box in [shape] if isinstance(shape, Rectangle) else _dots(shape):
            left, right = (max(0, round(x * _SCALE)) for x in (box.x, box.x + box.width))
            top, bottom = (max(0, round(y * _SCALE)) for y in (box.y, box.y + box.height))
            pixels[top:bottom, left:right] = list(bytes.fromhex(box.color.removeprefix("#")))
    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    # The byte before each row is its filter: none.
    rows = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, body) for name, body in chunks)


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _dots(label: Label) -> Iterator[Rectangle]:
    """Yield the dots of the characters of a text."""
    step = _GLYPH_WIDTH + _GAP
    width = step * len(label.text) - _GAP
    start = label.x - {"start": 0.0, "middle": width / 2, "end": float(width)}[label.anchor]
    for number, character in enumerate(label.text):
        for line, bits in enumerate(_GLYPHS.get(character, ())):
            for column in range(_GLYPH_WIDTH):
                if bits >> (_GLYPH_WIDTH - 1 - column) & 1:
                    x, y = start + number * step + column, label.y - _GLYPH_HEIGHT + line
                    yield Rectangle(x=x, y=y, width=1, height=1, color=_BLACK)


def _svg(width: int, height: int, elements: Iterable[str]) -> str:
    """Return elements on a white ground as an SVG document."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            *elements,
            "</svg>",
            "",
        ]
    )


def _element(shape: Rectangle | Label) -> str:
    if isinstance(shape, Label):
        return (
            f'<text x="{shape.x}" y="{shape.y}" text-anchor="{shape.anchor}" '
            f'fill="{_BLACK}">{escape(shape.text)}</text>'
        )
    title = f"<title>{shape.title}</title>" if shape.title else ""
    return (
        f'<rect x="{shape.x}" y="{shape.y}" width="{shape.width}" height="{shape.height}" '
        f'fill="{shape.color}">{title}</rect>'
    )


def _stats(
    classes: Sequence[SizeClass], points: Sequence[GrowthPoint]
) -> Iterator[Rectangle | Label]:
    sizes = [
        Bar(
            label=size_label(each),
            value=each.fragments,
            title=f"{each.fragments:,} fragments, {each.deleted_rows:,} deleted rows",
            share=each.deleted_share,
        )
        for each in classes
    ]
    yield from _panel(0, "fragments by rows, share of deleted rows in red", sizes)
    growth = [
        Bar(
            label=str(point.version),
            value=point.rows,
            title=f"version {point.version}: {point.rows:,} rows",
        )
        for point in points
    ]
    yield from _panel(_PANEL, "rows by version", growth)


def _panel(top: int, title: str, bars: Sequence[Bar]) -> Iterator[Rectangle | Label]:
    """Yield a bar chart whose upper edge is at `top`."""
    most = max((bar.value for bar in bars), default=0) or 1
    bottom = top + _PANEL - _MARGIN + 14
    room = _WIDTH - 20 - _LEFT

    def height(value: float) -> float:
        return round(bottom - value / most * (_PANEL - 2 * _MARGIN), 1)

    for tick in range(_TICKS + 1):
        value = most * tick / _TICKS
        y = height(value)
        yield Rectangle(x=_LEFT, y=y, width=room, height=1, color=_GREY)
        text = f"{value:,.0f}" if value == int(value) else ""
        yield Label(x=_LEFT - 8, y=y + 4, text=text, anchor="end")
    yield Label(x=_LEFT, y=top + 24, text=title, anchor="start")
    step = room / max(1, len(bars))
    every = max(1, len(bars) // _MOST_LABELS)
    for i, bar in enumerate(bars):
        x, width = round(_LEFT + i * step + step * 0.1, 1), round(step * 0.8, 1)
        edges = (height(bar.value), height(bar.value * bar.share), height(0))
        for color, high, low in ((_BLUE, *edges[:2]), (_RED, *edges[1:])):
            if low > high:
                size = {"width": width, "height": round(low - high, 1)}
                yield Rectangle(x=x, y=high, color=color, title=bar.title, **size)
        if i % every == 0:
            middle = round(x + step * 0.4, 1)
            yield Label(x=middle, y=bottom + 18, text=bar.label, anchor="middle")


_RECALL_WIDTH, _RECALL_HEIGHT, _RECALL_MARGIN = 640, 400, 60
_RECALL_TICKS = 5


def recall_svg(points: Sequence[RecallPoint], k: int) -> str:
    """Draw recall against median latency, with a label for each number of probes."""
    top = max(point.median_ms for point in points) * 1.1 or 1.0
    low = min(0.9, *(point.recall for point in points))
    low = max(0.0, low - 0.05)
    elements = [*_recall_axes(top, low, k), *_curve(points, top, low)]
    return _svg(_RECALL_WIDTH, _RECALL_HEIGHT, elements)


def _recall_axes(top: float, low: float, k: int) -> Iterator[str]:
    for tick in range(_RECALL_TICKS + 1):
        share = tick / _RECALL_TICKS
        x, y = _place(share * top, low + share * (1 - low), top, low)
        right = _RECALL_WIDTH - _RECALL_MARGIN
        yield f'<line x1="{_RECALL_MARGIN}" x2="{right}" y1="{y}" y2="{y}" stroke="#ddd"/>'
        text = f"{low + share * (1 - low):.2f}"
        yield f'<text x="{_RECALL_MARGIN - 8}" y="{y + 4}" text-anchor="end">{text}</text>'
        bottom = _RECALL_HEIGHT - _RECALL_MARGIN + 18
        yield f'<text x="{x}" y="{bottom}" text-anchor="middle">{share * top:.1f}</text>'
    middle, bottom = _RECALL_WIDTH / 2, _RECALL_HEIGHT - 15
    yield f'<text x="{middle}" y="{bottom}" text-anchor="middle">median latency in ms</text>'
    yield f'<text x="{_RECALL_MARGIN}" y="{_RECALL_MARGIN / 2}">recall@{k}</text>'


def _curve(points: Sequence[RecallPoint], top: float, low: float) -> Iterator[str]:
    probed = [p for p in points if p.nprobes is not None]
    places = [_place(p.median_ms, p.recall, top, low) for p in probed]
    line = " ".join(f"{x},{y}" for x, y in places)
    yield f'<polyline points="{line}" fill="none" stroke="#0a7ea4" stroke-width="2"/>'
    for point in points:
        x, y = _place(point.median_ms, point.recall, top, low)
        is_exact = point.nprobes is None
        colour, label = ("#c2410c", "exact") if is_exact else ("#0a7ea4", str(point.nprobes))
        yield f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>'
        yield f'<text x="{x + 6}" y="{y - 6}">{label}</text>'


def _place(latency: float, recall: float, top: float, low: float) -> tuple[float, float]:
    x = _RECALL_MARGIN + latency / top * (_RECALL_WIDTH - 2 * _RECALL_MARGIN)
    y = (
        _RECALL_HEIGHT
        - _RECALL_MARGIN
        - (recall - low) / (1 - low) * (_RECALL_HEIGHT - 2 * _RECALL_MARGIN)
    )
    return round(x, 1), round(y, 1)
