"""PNG files of rectangles and short labels, without an imaging library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, assert_never

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
    """A line of text at a baseline."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"]
    color: str


Shape = Rectangle | Label


def png(width: int, height: int, shapes: Iterable[Shape]) -> bytes:
    """Return shapes on a white ground as a PNG file.

    Labels consist of the characters of the built-in font; others are left blank.
    """
    canvas = _Canvas(width * _SCALE, height * _SCALE)
    for shape in shapes:
        match shape:
            case Rectangle():
                canvas.fill(shape.x, shape.y, shape.width, shape.height, shape.color)
            case Label():
                _write(canvas, shape)
            case _:
                assert_never(shape)
    return canvas.encoded()


class _Canvas:
    """Rows of pixels of three bytes."""

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = width, height
        self._rows = [bytearray(b"\xff" * (3 * width)) for _ in range(height)]

    def fill(self, x: float, y: float, width: float, height: float, color: str) -> None:
        """Fill the part of a rectangle, in units of the picture, that is inside the picture."""
        left, right = (min(max(round(v * _SCALE), 0), self._width) for v in (x, x + width))
        top, bottom = (min(max(round(v * _SCALE), 0), self._height) for v in (y, y + height))
        pixels = bytes.fromhex(color.removeprefix("#")) * (right - left)
        for row in self._rows[top:bottom]:
            row[3 * left : 3 * right] = pixels

    def encoded(self) -> bytes:
        """Return the file: header, compressed rows without filters, end."""
        header = struct.pack(">IIBBBBB", self._width, self._height, 8, 2, 0, 0, 0)
        content = zlib.compress(b"".join(b"\0" + row for row in self._rows), 9)
        chunks = ((b"IHDR", header), (b"IDAT", content), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, body) for name, body in chunks)


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _write(canvas: _Canvas, label: Label) -> None:
    step = _GLYPH_WIDTH + _GAP
    width = step * len(label.text) - _GAP
    start = label.x - {"start": 0.0, "middle": width / 2, "end": float(width)}[label.anchor]
    for number, character in enumerate(label.text):
        for line, bits in enumerate(_GLYPHS.get(character, _GLYPHS[" "])):
            for column in range(_GLYPH_WIDTH):
                if bits >> (_GLYPH_WIDTH - 1 - column) & 1:
                    x, y = start + number * step + column, label.y - _GLYPH_HEIGHT + line
                    canvas.fill(x, y, 1, 1, label.color)
