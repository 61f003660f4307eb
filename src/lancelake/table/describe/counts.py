"""Numbers with their nouns."""

from __future__ import annotations


def plural(count: int, one: str, many: str | None = None) -> str:
    """Say how many of something: `1 file`, `2 files`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
