"""The only doors for time, chance and uuids."""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never run backwards."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class Ids(Protocol):
    """Where chance comes from."""

    def uuid4(self) -> uuid.UUID:
        """A fresh uuid."""
        ...

    def random_u64(self) -> int:
        """A number below 2**64."""
        ...

    def random(self) -> float:
        """A number in [0, 1)."""
        ...

    def sample(self, population: int, count: int) -> list[int]:
        """`count` different numbers below `population`."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return time.time_ns()

    def monotonic_s(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Block this thread."""
        time.sleep(seconds)


class SystemIds:
    """Chance seeded by the operating system."""

    def __init__(self, seed: int | None = None) -> None:
        """With a seed the sequence can be replayed."""
        # Processes that are forked must not draw the same.
        self._random = random.SystemRandom() if seed is None else random.Random(seed)
        self._seed = seed

    def __reduce__(self) -> tuple[type[SystemIds], tuple[int | None]]:
        """Travel without state: chance has none, and a replay starts anew."""
        return SystemIds, (self._seed,)

    def uuid4(self) -> uuid.UUID:
        """A fresh uuid."""
        return uuid.UUID(int=self._random.getrandbits(128), version=4)

    def random_u64(self) -> int:
        """A number below 2**64."""
        return self._random.getrandbits(64)

    def random(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()

    def sample(self, population: int, count: int) -> list[int]:
        """`count` different numbers below `population`."""
        return self._random.sample(range(population), count)


@dataclass(slots=True)
class ManualClock:
    """A clock that moves only when told; for tests."""

    ns: int = 1_700_000_000_000_000_000
    slept: list[float] = field(default_factory=list)

    def now_ns(self) -> int:
        """The time last set."""
        return self.ns

    def monotonic_s(self) -> float:
        """The same time in seconds."""
        return self.ns / 1e9

    def sleep(self, seconds: float) -> None:
        """Move the clock and remember the wait."""
        self.slept.append(seconds)
        self.ns += int(seconds * 1e9)


def utc_from_ns(ns: int) -> datetime:
    """Turn nanoseconds since the epoch into an aware datetime, cut to microseconds."""
    seconds, rest = divmod(ns, 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)
