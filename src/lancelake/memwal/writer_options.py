"""Limits of the writer of a region."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.errors import InvalidRequestError
from lancelake.table.publish import SYSTEM, Surroundings


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterOptions:
    """Limits of a memtable, which other writers must be able to replay, and of memory."""

    max_memtable_rows: int = 100_000
    max_memtable_batches: int = 8_000
    max_memtable_bytes: int = 256 << 20
    max_unflushed_bytes: int = 1 << 30
    """Above this size of all memtables, writes wait for flushes."""
    flushes_in_background: bool = True
    surroundings: Surroundings = SYSTEM

    def __post_init__(self) -> None:
        """Refuse limits that no row fits."""
        for name in ("max_memtable_rows", "max_memtable_batches", "max_memtable_bytes"):
            if getattr(self, name) < 1:
                raise InvalidRequestError(f"{name} must be at least 1", found=getattr(self, name))
