"""A store that counts its calls."""

from __future__ import annotations

from collections import Counter

from lancelake.storage.instrumented import ObservedStore, StoreCalls
from lancelake.storage.store import ObjectStore


class CountingStore(ObservedStore):
    """Forwards every call and counts it."""

    def __init__(self, inner: ObjectStore) -> None:
        self.counts = StoreCalls()
        super().__init__(inner, (self.counts,))

    @property
    def calls(self) -> Counter[str]:
        return self.counts.calls

    @property
    def paths(self) -> list[tuple[str, str]]:
        return self.counts.paths

    @property
    def total(self) -> int:
        return self.counts.total

    @property
    def bytes_read(self) -> int:
        return self.counts.bytes_read

    @property
    def bytes_written(self) -> int:
        return self.counts.bytes_written

    def reset(self) -> None:
        self.counts.reset()
