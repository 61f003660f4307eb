"""Group fragments that are rewritten together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from lancelake.format.fragment import Fragment
from lancelake.table.compact.options import CompactionSettings

# A large fragment is not rewritten until its neighbours have one row for this many of its own.
_GROWTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCandidate:
    """A fragment, and the facts that decide whether it is rewritten.

    `covered_by` names the indices that cover it: indexed and unindexed rows must not be merged into
    one fragment.
    """

    fragment: Fragment
    physical_rows: int
    live_rows: int
    size_bytes: int
    covered_by: frozenset[int] = frozenset()

    @property
    def deleted_share(self) -> float:
        """Fraction of the rows that is deleted."""
        return 1 - self.live_rows / self.physical_rows if self.physical_rows else 0.0


Bin = tuple[CompactionCandidate, ...]


def file_count(part: Bin, options: CompactionSettings) -> int:
    """Return the number of files for the rows of a group."""
    rows = sum(c.live_rows for c in part)
    size_bytes = sum(c.size_bytes for c in part)
    files = rows // max(1, options.target_rows_per_fragment)
    if options.target_bytes_per_fragment:
        files = max(files, round(size_bytes / options.target_bytes_per_fragment))
    if options.file_bytes:
        files = max(files, math.ceil(size_bytes / options.file_bytes))
    return max(1, min(files, rows))


def bins(candidates: Iterable[CompactionCandidate], options: CompactionSettings) -> list[Bin]:
    """Group adjacent fragments worth rewriting, each group about the size of one fragment.

    If rows are sorted, fragments covered by the same indices form a group.
    """
    if options.orders_rows:
        return _sortable(candidates, options)
    found = [
        part
        for run in _runs(candidates, options)
        for merged in _without_settled(run, options)
        for part in _split(merged, options)
        if not _is_pointless(part, options)
    ]
    return _within_limits(found, options)


def _runs(candidates: Iterable[CompactionCandidate], options: CompactionSettings) -> Iterator[Bin]:
    """Yield runs of adjacent fragments covered by the same indices."""
    run: list[CompactionCandidate] = []
    for candidate in candidates:
        is_taken = _is_taken(candidate, options)
        if run and (not is_taken or candidate.covered_by != run[0].covered_by):
            yield tuple(run)
            run = []
        if is_taken:
            run.append(candidate)
    if run:
        yield tuple(run)


def _is_taken(candidate: CompactionCandidate, options: CompactionSettings) -> bool:
    if candidate.fragment.id in options.excluded_fragment_ids:
        return False
    if _sheds_rows(candidate, options) or _is_oversized(candidate, options):
        return True
    is_short = candidate.physical_rows < options.target_rows_per_fragment
    return is_short and candidate.size_bytes < options.settled_at_bytes


def _sheds_rows(candidate: CompactionCandidate, options: CompactionSettings) -> bool:
    is_over = candidate.deleted_share > options.materialize_deletions_threshold
    return options.materialize_deletions and is_over


def _is_oversized(candidate: CompactionCandidate, options: CompactionSettings) -> bool:
    """Whether a fragment is split into several that are within the limit of a file's size."""
    most = options.file_bytes
    return most is not None and candidate.size_bytes >= 2 * most and candidate.live_rows > 1


def _is_pointless(part: Bin, options: CompactionSettings) -> bool:
    """Whether fragments would be copied without any gain."""
    if any(_sheds_rows(c, options) or _is_oversized(c, options) for c in part):
        return False
    return file_count(part, options) >= len(part)


def _without_settled(run: Bin, options: CompactionSettings) -> Iterator[Bin]:
    """Exclude a fragment that is much larger than all fragments it would be merged with."""
    largest = max(range(len(run)), key=lambda i: run[i].live_rows)
    candidate = run[largest]
    others = sum(c.live_rows for c in run) - candidate.live_rows
    if (
        len(run) == 1
        or candidate.size_bytes < options.settled_bytes
        or others * _GROWTH >= candidate.live_rows
        or _sheds_rows(candidate, options)
    ):
        yield run
        return
    for part in (run[:largest], run[largest + 1 :]):
        if part:
            yield from _without_settled(part, options)


def _split(run: Bin, options: CompactionSettings) -> Iterator[Bin]:
    """Split a run into parts that each fill a fragment; the last one takes the remainder."""
    left_rows = sum(c.live_rows for c in run)
    left_bytes = sum(c.size_bytes for c in run)
    start = rows = size_bytes = 0
    for end, candidate in enumerate(run, start=1):
        rows += candidate.live_rows
        size_bytes += candidate.size_bytes
        rest = left_rows - rows, left_bytes - size_bytes
        if _is_full(rows, size_bytes, options) and _is_full(*rest, options):
            yield run[start:end]
            left_rows, left_bytes = rest
            start, rows, size_bytes = end, 0, 0
    yield run[start:]


def _is_full(rows: int, size_bytes: int, options: CompactionSettings) -> bool:
    return rows >= options.target_rows_per_fragment or size_bytes >= options.settled_at_bytes


def _sortable(candidates: Iterable[CompactionCandidate], options: CompactionSettings) -> list[Bin]:
    """Take the first fragments within the limit of what one run may read."""
    excluded = options.excluded_fragment_ids
    every = ((c,) for c in candidates if c.fragment.id not in excluded)
    groups: dict[frozenset[int], list[CompactionCandidate]] = {}
    for (candidate,) in _within_limits(every, options):
        groups.setdefault(candidate.covered_by, []).append(candidate)
    return [tuple(group) for group in groups.values()]


def _within_limits(found: Iterable[Bin], options: CompactionSettings) -> list[Bin]:
    """Take the first bins whose sources are within the limit of what one run may read."""
    fragments = rows = size_bytes = 0

    def fits(part: Bin) -> bool:
        nonlocal fragments, rows, size_bytes
        fragments += len(part)
        rows += sum(c.live_rows for c in part)
        size_bytes += sum(c.size_bytes for c in part)
        return (
            fragments <= (options.max_source_fragments or fragments)
            and rows <= (options.max_source_rows or rows)
            and size_bytes <= (options.max_source_bytes or size_bytes)
        )

    return list(takewhile(fits, found))
