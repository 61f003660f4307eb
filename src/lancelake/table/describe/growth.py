"""Sizes of fragments, deleted rows, and growth of a table by version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from lancelake.commit.snapshot import Snapshot
from lancelake.format.names import ManifestName
from lancelake.table.describe import operations
from lancelake.table.describe.log import log_entries, version_names
from lancelake.table.history import summarize
from lancelake.table.version_delta import live_rows

_POWERS = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeClass:
    """Fragments with fewer rows than `below` and not in a smaller class; None is the largest."""

    below: int | None
    fragments: int
    rows: int
    deleted_rows: int

    @property
    def deleted_share(self) -> float:
        """Part of the rows of these fragments that is deleted."""
        stored = self.rows + self.deleted_rows
        return self.deleted_rows / stored if stored else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthPoint:
    """Rows and bytes of data files of a version."""

    version: int
    operation: str
    rows: int
    data_bytes: int
    fragments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionGrowth:
    """The last versions, oldest first, and the number of those before them.

    `damaged` are versions among them whose manifest cannot be read.
    """

    points: tuple[GrowthPoint, ...]
    older: int
    damaged: tuple[int, ...]


def size_classes(snapshot: Snapshot) -> tuple[SizeClass, ...]:
    """Return the fragments by the power of ten of their rows; classes without one are omitted."""
    found: dict[int | None, list[int]] = {}
    for fragment in snapshot.manifest.fragments:
        rows = fragment.physical_rows or 0
        deleted = rows - (rows if fragment.live_rows is None else fragment.live_rows)
        below = next((power for power in _POWERS if rows < power), None)
        counts = found.setdefault(below, [0, 0, 0])
        counts[0] += 1
        counts[1] += rows - deleted
        counts[2] += deleted
    order = [power for power in (*_POWERS, None) if power in found]
    return tuple(
        SizeClass(
            below=power,
            fragments=found[power][0],
            rows=found[power][1],
            deleted_rows=found[power][2],
        )
        for power in order
    )


def size_label(size: SizeClass) -> str:
    """Return the bound of a class for people."""
    return "larger" if size.below is None else f"< {size.below:,}"


def growth(newest: Snapshot, most: int | None) -> VersionGrowth:
    """Return the last versions, at most `most`."""
    names = version_names(newest)
    count = len(names) if most is None else min(most, len(names))
    # The first is compared with the one before it.
    points = list(_points(newest, names[: count + 1], count))
    read = {point.version for point in points}
    return VersionGrowth(
        points=tuple(reversed(points)),
        older=len(names) - count,
        damaged=tuple(n.version for n in reversed(names[:count]) if n.version not in read),
    )


def _points(newest: Snapshot, names: list[ManifestName], count: int) -> Iterator[GrowthPoint]:
    for entry in islice(log_entries(newest, names), count):
        if entry.snapshot is None:
            continue
        counts = summarize(entry.snapshot)
        operation = None if entry.transaction is None else entry.transaction.operation
        yield GrowthPoint(
            version=entry.version,
            operation=operations.name(operation),
            rows=live_rows(entry.snapshot) or 0,
            data_bytes=counts.total_files_size,
            fragments=counts.total_fragments,
        )
