"""Counts with a noun in the singular or plural."""

from __future__ import annotations


def plural(count: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun: `1 file`, `2 files`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
