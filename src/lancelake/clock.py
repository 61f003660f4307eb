"""Sources of time, random numbers and uuids, which tests can replace."""

from __future__ import annotations

import random
import time
import uuid
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Source of time."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        ...

    def monotonic_s(self) -> float:
        """Seconds of a clock that never runs backwards."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for a number of seconds."""
        ...


class Ids(Protocol):
    """Source of random numbers and uuids."""

    def uuid4(self) -> uuid.UUID:
        """A new random uuid."""
        ...

    def random_u64(self) -> int:
        """A number below 2**64."""
        ...

    def random(self) -> float:
        """A number in [0, 1)."""
        ...

    def sample(self, population: int, count: int) -> list[int]:
        """A sample of `count` different numbers below `population`."""
        ...


class SystemClock:
    """Clock of the operating system."""

    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return time.time_ns()

    def monotonic_s(self) -> float:
        """Seconds of a clock that never runs backwards."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Block this thread."""
        time.sleep(seconds)


class SystemIds:
    """Random numbers, by default from the operating system."""

    def __init__(self, seed: int | None = None) -> None:
        """Create a source; with a seed, its sequence can be repeated."""
        # Forked processes must not get the same numbers.
        self._random = random.SystemRandom() if seed is None else random.Random(seed)
        self._seed = seed

    def __reduce__(self) -> tuple[type[SystemIds], tuple[int | None]]:
        """Pickle the seed only: a seeded sequence starts again."""
        return SystemIds, (self._seed,)

    def uuid4(self) -> uuid.UUID:
        """A new random uuid."""
        return uuid.UUID(int=self._random.getrandbits(128), version=4)

    def random_u64(self) -> int:
        """A number below 2**64."""
        return self._random.getrandbits(64)

    def random(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()

    def sample(self, population: int, count: int) -> list[int]:
        """A sample of `count` different numbers below `population`."""
        return self._random.sample(range(population), count)


def utc_from_ns(ns: int) -> datetime:
    """Turn nanoseconds since the epoch into an aware datetime, truncated to microseconds."""
    seconds, rest = divmod(ns, 1_000_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)
