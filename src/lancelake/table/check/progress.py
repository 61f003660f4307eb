"""Progress of a check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The step that starts: what it checks, and how many of all steps are done."""

    step: str
    done: int
    total: int


OnProgress = Callable[[Progress], None]
