"""Clock of one time, which tests set."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class ManualClock:
    """Clock for tests, which only moves when it is set or slept on."""

    ns: int = 1_700_000_000_000_000_000
    slept: list[float] = field(default_factory=list)

    def now_ns(self) -> int:
        """The time of this clock."""
        return self.ns

    def monotonic_s(self) -> float:
        """The same time in seconds."""
        return self.ns / 1e9

    def sleep(self, seconds: float) -> None:
        """Advance the clock and record the wait."""
        self.slept.append(seconds)
        self.ns += int(seconds * 1e9)
