"""How far is a check?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A step about to begin: what it looks at, and how many of how many are done."""

    step: str
    done: int
    total: int


OnProgress = Callable[[Progress], None]
