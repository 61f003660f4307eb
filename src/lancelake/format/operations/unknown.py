"""Unknown: an operation of a newer release, kept as encoded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOperation:
    """Its field number in `Transaction` (0 when there was none) and its encoded field."""

    tag: int
    data: bytes
