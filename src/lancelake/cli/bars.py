"""Bars of block characters: sparklines and bar charts for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def sparkline(counts: Sequence[int]) -> str:
    """Return one block for each count; zero is a blank."""
    most = max(counts, default=0)
    if not most:
        return ""
    top = len(_BLOCKS) - 1
    return "".join(" " if not c else _BLOCKS[max(0, round(c / most * top))] for c in counts)


def bar(value: float, most: float, width: int) -> str:
    """Return a horizontal bar, in eighths of a character."""
    eighths = 0 if most <= 0 else round(value / most * width * 8)
    if value > 0:
        eighths = max(1, eighths)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
