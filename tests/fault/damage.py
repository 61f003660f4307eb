"""Damaged bytes: every truncation, and flips of a few bytes that can be replayed."""

from __future__ import annotations

import random
import resource
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

SEED = 20240617
MAX_FLIPPED_BYTES = 4
HEADROOM_BYTES = 1 << 30
MAX_GROWTH_BYTES = 200 << 20


def truncations(data: bytes) -> Iterator[bytes]:
    """Yield every proper prefix."""
    return (data[:size] for size in range(len(data)))


def flips(samples: Mapping[str, bytes], count: int) -> Iterator[bytes]:
    """Yield `count` copies of samples, taken in turn, with one to four bytes changed."""
    chance = random.Random(SEED)
    kinds: Sequence[bytes] = list(samples.values())
    return (_flipped(kinds[number % len(kinds)], chance) for number in range(count))


def _flipped(data: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(data)
    for _ in range(chance.randint(1, MAX_FLIPPED_BYTES)):
        damaged[chance.randrange(len(damaged))] ^= chance.randint(1, 255)
    return bytes(damaged)


@contextmanager
def bounded(*, seconds: int) -> Iterator[None]:
    """Make a hang, and the use or request of huge memory, fail."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    peak = _peak_bytes()
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + HEADROOM_BYTES, before[1]))
    handler = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)
    growth = _peak_bytes() - peak
    assert growth < MAX_GROWTH_BYTES, f"damaged bytes made the reader take {growth} bytes"


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


def _stop(signum: int, frame: FrameType | None) -> None:
    raise TimeoutError("damaged bytes keep the reader busy")
