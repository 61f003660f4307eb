"""An operation of a newer release, kept as the bytes it came in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOperation:
    """Its field number in `Transaction` (0 when there was none) and its encoded field."""

    tag: int
    data: bytes
