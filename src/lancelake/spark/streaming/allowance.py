"""Limits of a streaming batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lancelake.spark.streaming.parts import StreamPart


@dataclass(slots=True, kw_only=True)
class Allowance:
    """Remaining limits of a batch; None is unlimited. The first part is always allowed."""

    versions: int | None = None
    files: int | None = None
    rows: int | None = None
    size_bytes: int | None = None
    is_fresh: bool = True

    def begin_version(self) -> bool:
        """Whether one more version may be started."""
        if self.versions is None:
            return True
        self.versions -= 1
        return self.versions >= 0

    def take(self, parts: Sequence[StreamPart]) -> int:
        """Return how many of these parts, from the first, are within the limits."""
        for count, part in enumerate(parts):
            if not self._fits(part):
                return count
            self.is_fresh = False
            self.files = _less(self.files, 1)
            self.rows = _less(self.rows, part.rows)
            self.size_bytes = _less(self.size_bytes, part.size_bytes)
        return len(parts)

    def _fits(self, part: StreamPart) -> bool:
        pairs = ((self.files, 1), (self.rows, part.rows), (self.size_bytes, part.size_bytes))
        return self.is_fresh or all(left is None or left >= need for left, need in pairs)


def _less(left: int | None, taken: int) -> int | None:
    return None if left is None else left - taken
