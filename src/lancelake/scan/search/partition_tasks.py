"""Search of many query vectors by an index as tasks, each of some partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.format.ids import FragmentId
from lancelake.index.vector.segment import PartitionQueries
from lancelake.index.vector.top_rows import NearestRows
from lancelake.scan.count import live_rows
from lancelake.scan.index_search.sources import named_failures
from lancelake.scan.nearest import Nearest
from lancelake.scan.search.found_rows import FOUND
from lancelake.scan.vector_search.gate import live_gate
from lancelake.scan.vector_search.sources import (
    SearchedIndex,
    VectorSource,
    probes_of,
    searched_index,
)
from lancelake.scan.vector_search.target import resolve_target


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTask:
    """The partitions of a segment that a task opens, and the queries that search each."""

    snapshot: Snapshot
    nearest: Nearest
    segment: int
    """Number of the segment among those of the index."""
    pairs: tuple[PartitionQueries, ...]

    is_partial = True

    def run(self) -> pa.Table:
        """Return up to `k` rows of each query from these partitions."""
        nearest = self.nearest
        target = resolve_target(self.snapshot, nearest)
        index = searched_index(self.snapshot, target, nearest, only_indexed=False)
        if index is None or not self.pairs:
            return FOUND.empty_table()
        source = index.sources[self.segment]
        gate = live_gate(self.snapshot, source)
        asked, pairs = _numbered(self.pairs)
        found = NearestRows(len(asked), nearest.k, nearest.within)
        with named_failures(index.name):
            source.segment.search_partitions(nearest.queries[asked], pairs, found, gate)
        ranked = [found.result(place) for place in range(len(asked))]
        ids = np.concatenate([rows.ids for rows in ranked])
        columns = [
            np.repeat(asked, [len(rows) for rows in ranked]),
            gate.addresses(self.snapshot, ids).astype(np.int64),
            np.concatenate([rows.distances for rows in ranked]),
        ]
        return pa.table(columns, schema=FOUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSplit:
    """A search by an index, split into tasks, and the fragments to be scanned besides."""

    tasks: tuple[PartitionTask, ...]
    uncovered: tuple[FragmentId, ...]
    exact: Nearest
    """The search of the uncovered fragments: that of the index, without it."""


def split_by_partitions(
    snapshot: Snapshot, nearest: Nearest, parallelism: int, *, fast_search: bool
) -> PartitionSplit | None:
    """Split a search without a filter so that each partition is opened by one task.

    None if the partitions of a query depend on what is found in others: if candidates are refined,
    or if those that are searched at first may have fewer than `k` rows.
    """
    if nearest.refine_factor is not None:
        return None
    target = resolve_target(snapshot, nearest)
    index = searched_index(snapshot, target, nearest, only_indexed=fast_search)
    if index is None:
        return None
    tasks: list[PartitionTask] = []
    for number, source in enumerate(index.sources):
        chosen = _chosen(snapshot, source, nearest)
        if chosen is None:
            return None
        for pairs in _shares(source, chosen, parallelism):
            part = PartitionTask(snapshot=snapshot, nearest=nearest, segment=number, pairs=pairs)
            tasks.append(part)
    left = () if fast_search else _uncovered(snapshot, index)
    exact = replace(nearest, use_index=False, metric=index.metric)
    return PartitionSplit(tasks=tuple(tasks), uncovered=left, exact=exact)


def _chosen(
    snapshot: Snapshot, source: VectorSource, nearest: Nearest
) -> npt.NDArray[np.int64] | None:
    """Return the partitions that each query searches; None if that is known only later."""
    segment = source.segment
    probes = probes_of(nearest, len(segment.model.partitions))
    chosen = segment.nearest_partitions(nearest.queries, probes.first)
    if probes.first == probes.most:
        return chosen
    if not nearest.within.is_unbounded:
        return None
    counts = np.array(segment.model.rows.counts)
    fragments = [f for f in snapshot.manifest.fragments if f.id in source.coverage.fragments]
    places = snapshot.files, snapshot.manifest_at
    live = sum(live_rows(*places, fragment) for fragment in fragments)
    stored = sum(fragment.physical_rows or 0 for fragment in fragments)
    # Then all rows of the index are rows of these fragments, of which the deleted ones are known.
    is_whole = stored == counts.sum()
    least = counts[chosen].sum(axis=1).min() - (stored - live)
    return chosen if is_whole and least >= nearest.k else None


def _shares(
    source: VectorSource, chosen: npt.NDArray[np.int64], count: int
) -> list[tuple[PartitionQueries, ...]]:
    """Distribute partitions, in their order, to shares of about the same number of distances."""
    numbers, flat = np.unique(chosen, return_inverse=True)
    order = np.argsort(flat.reshape(-1), kind="stable")
    queries = np.repeat(np.arange(len(chosen)), chosen.shape[1])[order]
    asked = np.bincount(flat.reshape(-1))
    groups = np.split(queries, np.cumsum(asked)[:-1])
    work = np.cumsum(asked * (1 + np.array(source.segment.model.rows.counts)[numbers]))
    share = np.minimum((work - 1) * count // work[-1], count - 1)
    pairs = list(zip(numbers.tolist(), groups, strict=True))
    found = [tuple(p for p, s in zip(pairs, share, strict=True) if s == i) for i in range(count)]
    return [part for part in found if part]


def _numbered(
    pairs: tuple[PartitionQueries, ...],
) -> tuple[npt.NDArray[np.int64], list[PartitionQueries]]:
    """Return the queries of some partitions, and the partitions with places among these."""
    asked = np.unique(np.concatenate([queries for _, queries in pairs]))
    return asked, [(number, np.searchsorted(asked, queries)) for number, queries in pairs]


def _uncovered(snapshot: Snapshot, index: SearchedIndex) -> tuple[FragmentId, ...]:
    covered = index.covered
    return tuple(f.id for f in snapshot.manifest.fragments if f.id not in covered)
