"""Backoff of writers whose version was taken by another commit."""

from __future__ import annotations

from dataclasses import dataclass

_FIRST_EXPONENT = 2
# Enough slots to keep a few dozen writers apart. Longer waits only lose time beside a writer
# that commits at a steady pace.
_MOST_EXPONENT = 5
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
        """Return wait number `wait` (from 0): fewer than 4, 8, 16, then 32 slots."""
        slots = 1 << min(wait + _FIRST_EXPONENT, _MOST_EXPONENT)
        return int(chance * slots) * _MARGIN * self.attempt_s


def redo_delay_s(attempt_s: float, chance: float, *, most_s: float) -> float:
    """Return the wait before a change is made again: shorter than the change and `most_s`."""
    return chance * max(0.0, min(attempt_s, most_s))


def detached_delay_s(wait: int, chance: float) -> float:
    """Return the wait number `wait` (from 0) of a detached commit whose number was taken."""
    full = _DETACHED_FIRST_S * 2.0 ** min(wait, _DETACHED_MOST_EXPONENT)
    spread = (2 * chance - 1) * _DETACHED_SPREAD_S
    return min(_DETACHED_MOST_S, max(0.0, full + spread))
