"""Exact hashes of the keys that a change inserts, kept in memory only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lancelake.format.xxh64 import U64

MOST_KEYS = 4 << 20
"""Limit of hashes in memory; above it, only the recorded filter is used."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyHashes:
    """Hashes in ascending order, without repeats."""

    hashes: U64

    def __len__(self) -> int:
        return len(self.hashes)

    @staticmethod
    def of(parts: Iterable[U64 | None]) -> KeyHashes | None:
        """Merge parts; None when a part is unknown or when there are too many keys."""
        held: list[U64] = [np.array([], dtype=np.uint64)]
        count = 0
        for part in parts:
            count += 0 if part is None else len(part)
            if part is None or count > MOST_KEYS:
                return None
            held.append(part)
        # np.unique hashes the numbers before it sorts them, which takes ten times as long.
        ordered = np.sort(np.concatenate(held))
        is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
        return KeyHashes(ordered[is_first])

    def contains_any(self, hashes: U64) -> bool:
        """Whether one of these keys is inserted."""
        if not len(self.hashes):
            return False
        places = np.searchsorted(self.hashes, hashes)
        places[places == len(self.hashes)] = 0
        return bool((self.hashes[places] == hashes).any())
