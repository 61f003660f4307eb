"""Values that are kept as long as a snapshot lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from lancelake.commit.snapshot import Snapshot

T = TypeVar("T")


class PerSnapshot(Generic[T]):
    """A value for each snapshot, made when it is first asked for."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._known: dict[int, tuple[weakref.ref[Snapshot], T]] = {}

    def __call__(self, snapshot: Snapshot) -> T:
        """Return the value of a snapshot."""
        number = id(snapshot)
        known = self._known.get(number)
        if known is not None and known[0]() is snapshot:
            return known[1]
        made = self._make()
        owner = weakref.ref(snapshot, lambda _: self._known.pop(number, None))
        self._known[number] = (owner, made)
        return made
