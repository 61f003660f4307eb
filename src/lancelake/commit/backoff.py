"""Backoff of writers whose version was taken by another commit."""

from __future__ import annotations

from dataclasses import dataclass

# 32 slots keep a few dozen writers apart. A writer that has lost more often than that waits less
# than those who came after it, and in the end not at all: no writer starves.
_SLOTS = (4, 8, 16, 32, 16, 8, 4, 2)
_MARGIN = 1.1
_DETACHED_FIRST_S = 0.05
_DETACHED_SPREAD_S = 0.05
_DETACHED_MOST_S = 5.0
_DETACHED_MOST_EXPONENT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotBackoff:
    """Random backoff in slots; a slot is a little longer than one attempt."""

    attempt_s: float

    def delay_s(self, wait: int, chance: float) -> float:
        """Return wait number `wait` (from 0), a random part of its slots."""
        slots = _SLOTS[wait] if wait < len(_SLOTS) else 0
        return int(chance * slots) * _MARGIN * self.attempt_s


def redo_delay_s(attempt_s: float, chance: float, *, most_s: float) -> float:
    """Return the wait before a change is made again: shorter than the change and `most_s`."""
    return chance * max(0.0, min(attempt_s, most_s))


def detached_delay_s(wait: int, chance: float) -> float:
    """Return the wait number `wait` (from 0) of a detached commit whose number was taken."""
    full = _DETACHED_FIRST_S * 2.0 ** min(wait, _DETACHED_MOST_EXPONENT)
    spread = (2 * chance - 1) * _DETACHED_SPREAD_S
    return min(_DETACHED_MOST_S, max(0.0, full + spread))
