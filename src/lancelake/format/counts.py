"""Counts with a noun in the singular or plural."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
_ROUND_FROM = 100


def plural(count: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun: `1 file`, `2 files`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def size(count: int) -> str:
    """Format a number of bytes: `0 B`, `1.5 KiB`, `120 MiB`."""
    value = float(count)
    unit = 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value /= _STEP
        unit += 1
    if unit == 0 or value >= _ROUND_FROM:
        return f"{value:.0f} {_UNITS[unit]}"
    return f"{value:.1f} {_UNITS[unit]}"
