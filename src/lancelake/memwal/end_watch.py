"""Watch of a writer over its table, so that it stops when the MemWAL has ended.

The process that ends a MemWAL also replaces its writers, but may stop before that; official
releases never do it. Rows that were acknowledged from then on would be seen by no reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from lancelake.clock import Clock
from lancelake.commit.snapshot import Snapshot
from lancelake.commit.version_line import open_line
from lancelake.commit.versions import latest_version
from lancelake.errors import StorageUnavailableError
from lancelake.memwal.elapsed import Elapsed
from lancelake.memwal.ended import ensure_not_ended

_ATTEMPTS = 4
# The next version alone may have another kind of name, or be cleaned up behind a still newer one.
_SURE_FOR_S = 1.0
_LOCAL = ("file", "memory")


class EndWatch:
    """Looks whether the newest version of a table still has the MemWAL.

    Within a second of a full look it asks only whether the next version exists. A MemWAL that ends
    during a call may end before or after it, so that the look may be at any time of the call: on a
    store over the network it runs beside the call, and adds no latency.
    """

    def __init__(self, base: Snapshot, clock: Clock) -> None:
        self._base = base
        self._clock = clock
        self._line = open_line(base.location)
        self._known = base.name
        self._full: Elapsed | None = None
        self._beside: ThreadPoolExecutor | None = None

    @contextmanager
    def during(self) -> Iterator[None]:
        """Raise WriterFencedError if the MemWAL had ended before the block began."""
        if self._base.location.scheme in _LOCAL:
            self.look()
            yield
            return
        if self._beside is None:
            self._beside = ThreadPoolExecutor(1, thread_name_prefix="memwal-watch")
        looking = self._beside.submit(self.look)
        try:
            yield
        finally:
            looking.exception()
        looking.result()

    def look(self) -> None:
        """Raise WriterFencedError if the newest version has no MemWAL."""
        for attempt in range(_ATTEMPTS):
            try:
                self._look()
            except StorageUnavailableError:
                if attempt + 1 == _ATTEMPTS:
                    raise
            else:
                return

    def close(self) -> None:
        """Stop."""
        if self._beside is not None:
            self._beside.shutdown(wait=True)

    def _look(self) -> None:
        if self._full is not None and not self._full.is_long(_SURE_FOR_S):
            if self._line.has_next(self._known):
                self._known = ensure_not_ended(self._base).name
            return
        began = Elapsed(self._clock)
        if latest_version(self._base.location).version > self._known.version:
            self._known = ensure_not_ended(self._base).name
        self._full = began
