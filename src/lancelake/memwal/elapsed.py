"""Time since a check: whether garbage collection may have removed what the check relied on."""

from __future__ import annotations

from lancelake.clock import Clock

LONGEST_S = 3600.0
"""After this time a writer checks again that it has not been replaced.

Garbage collection keeps what stops replaced writers for much longer.
"""
_NS_PER_S = 1_000_000_000


class Elapsed:
    """Time since this was made, by two clocks: one of them also runs while a machine is suspended.

    A wall clock that was set back proves nothing, so that the time counts as long.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall_ns = clock.now_ns()
        self._monotonic_s = clock.monotonic_s()

    def is_long(self, longest_s: float = LONGEST_S) -> bool:
        """Whether a check from then must be repeated."""
        wall_s = (self._clock.now_ns() - self._wall_ns) / _NS_PER_S
        steady_s = self._clock.monotonic_s() - self._monotonic_s
        return wall_s < 0 or max(wall_s, steady_s) > longest_s
