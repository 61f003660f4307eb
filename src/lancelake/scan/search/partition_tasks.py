"""Search of many query vectors by an index as tasks, each of some partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.format.ids import FragmentId
from lancelake.index.vector.segment import PartitionQueries
from lancelake.index.vector.top_rows import ANY_DISTANCE, NearestRows
from lancelake.scan.count import live_rows
from lancelake.scan.index_search.sources import named_failures
from lancelake.scan.nearest import Nearest
from lancelake.scan.search.found_rows import FOUND
from lancelake.scan.search.query_tasks import BatchSearch, BatchSearchTask
from lancelake.scan.vector_search.filtered import many_rows, vector_scan
from lancelake.scan.vector_search.gate import filtered_gate, live_gate
from lancelake.scan.vector_search.indexed import candidate_count
from lancelake.scan.vector_search.sources import (
    WITHOUT_INDEX,
    SearchedIndex,
    VectorSource,
    probes_of,
    searched_index,
)
from lancelake.scan.vector_search.target import resolve_target

Pairs = tuple[PartitionQueries, ...]
"""Partitions of a segment, and the queries that search each."""

Chosen = npt.NDArray[np.int64]
"""The partitions of a segment that each query searches."""

# A row of an index is read in less time than so many distances are computed.
_DISTANCES_PER_READ = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTask:
    """The partitions of an index that a task opens, and the queries that search each."""

    search: BatchSearch
    segments: tuple[Pairs, ...]
    """The partitions of each segment, in the order of the segments of the index."""
    instead: BatchSearchTask | None = None
    """The share of this task if so few rows match the filter that all of them are read."""

    is_partial = True

    def run(self) -> pa.Table:
        """Return candidates of each query from these partitions, with the columns of `FOUND`."""
        search = self.search
        target = resolve_target(search.snapshot, search.nearest)
        index = searched_index(search.snapshot, target, search.nearest, only_indexed=False)
        if index is None:
            return FOUND.empty_table()
        rows: dict[int, BitMap] | None = None
        if search.filter is not None:
            covered = _fragments_of(search.snapshot, index, are_covered=True)
            scan = vector_scan(search.snapshot, target, covered, search.filter)
            rows = many_rows(scan, search.nearest.k)
            if rows is None:
                return FOUND.empty_table() if self.instead is None else self.instead.run()
        with named_failures(index.name, WITHOUT_INDEX):
            found = [
                self._searched(number, index.sources[number], pairs, rows)
                for number, pairs in enumerate(self.segments)
                if pairs
            ]
        return pa.concat_tables(found) if found else FOUND.empty_table()

    def _searched(
        self, number: int, source: VectorSource, pairs: Pairs, rows: dict[int, BitMap] | None
    ) -> pa.Table:
        snapshot, nearest = self.search.snapshot, self.search.nearest
        gate = live_gate(snapshot, source)
        if rows is not None:
            gate = filtered_gate(snapshot, source, rows)
        asked, chosen = _numbered(pairs)
        # Distances of candidates are not exact; their range is checked once they are refined.
        within = nearest.within if nearest.refine_factor is None else ANY_DISTANCE
        found = NearestRows(len(asked), candidate_count(nearest), within)
        source.segment.search_partitions(nearest.queries[asked], chosen, found, gate)
        ranked = [found.result(place) for place in range(len(asked))]
        ids = np.concatenate([rows.ids for rows in ranked])
        columns = [
            np.repeat(asked, [len(rows) for rows in ranked]),
            np.full(len(ids), number, dtype=np.int32),
            ids.astype(np.int64),
            gate.addresses(snapshot, ids).astype(np.int64),
            np.concatenate([rows.distances for rows in ranked]),
        ]
        return pa.table(columns, schema=FOUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSplit:
    """A search by an index, split into tasks, and the fragments to be scanned besides."""

    tasks: tuple[PartitionTask, ...]
    covered: tuple[FragmentId, ...]
    """The fragments that the index covers."""
    uncovered: tuple[FragmentId, ...]
    exact: Nearest
    """The search of fragments without the index."""


def split_by_partitions(search: BatchSearch, parallelism: int) -> PartitionSplit | None:
    """Split a search so that each partition is opened by one task.

    None if the partitions of a query depend on what is found in others: if those that are
    searched at first may have too few rows. None also if reading the whole index in every task
    costs little beside the distances: tasks of queries need no merge.
    """
    snapshot, nearest = search.snapshot, search.nearest
    target = resolve_target(snapshot, nearest)
    index = searched_index(snapshot, target, nearest, only_indexed=search.fast_search)
    if index is None:
        return None
    uncovered = () if search.fast_search else _fragments_of(snapshot, index, are_covered=False)
    chosen = [each for source in index.sources if (each := _chosen(search, source)) is not None]
    if len(chosen) < len(index.sources):
        return None
    if not uncovered and _is_read_soon(index, chosen, parallelism):
        return None
    pairs = zip(index.sources, chosen, strict=True)
    shares = [_shares(source, each, parallelism) for source, each in pairs]
    tasks = (PartitionTask(search=search, segments=each) for each in zip(*shares, strict=True))
    return PartitionSplit(
        tasks=tuple(task for task in tasks if any(task.segments)),
        covered=_fragments_of(snapshot, index, are_covered=True),
        uncovered=uncovered,
        exact=replace(nearest, use_index=False, metric=index.metric),
    )


def _chosen(search: BatchSearch, source: VectorSource) -> Chosen | None:
    """Return the partitions that each query searches; None if that is known only later."""
    snapshot, nearest, segment = search.snapshot, search.nearest, source.segment
    probes = probes_of(nearest, len(segment.model.partitions))
    chosen = segment.nearest_partitions(nearest.queries, probes.first)
    if probes.first == probes.most:
        return chosen
    is_bounded = nearest.refine_factor is None and not nearest.within.is_unbounded
    if is_bounded or search.filter is not None:
        return None
    counts = np.array(segment.model.rows.counts)
    fragments = [f for f in snapshot.manifest.fragments if f.id in source.coverage.fragments]
    places = snapshot.files, snapshot.manifest_at
    live = sum(live_rows(*places, fragment) for fragment in fragments)
    stored = sum(fragment.physical_rows or 0 for fragment in fragments)
    # Then all rows of the index are rows of these fragments, of which the deleted ones are known.
    is_whole = stored == counts.sum()
    least = counts[chosen].sum(axis=1).min() - (stored - live)
    return chosen if is_whole and least >= candidate_count(nearest) else None


def _is_read_soon(index: SearchedIndex, chosen: Sequence[Chosen], tasks: int) -> bool:
    """Whether tasks read all rows of an index in less time than the distances take."""
    counts = [np.array(source.segment.model.rows.counts) for source in index.sources]
    rows = sum(int(each.sum()) for each in counts)
    pairs = zip(counts, chosen, strict=True)
    distances = sum(int(each[searched].sum()) for each, searched in pairs)
    return rows * tasks * _DISTANCES_PER_READ <= distances


def _shares(source: VectorSource, chosen: Chosen, count: int) -> list[Pairs]:
    """Distribute partitions, in their order, to shares of about the same number of distances."""
    numbers, flat = np.unique(chosen, return_inverse=True)
    order = np.argsort(flat.reshape(-1), kind="stable")
    queries = np.repeat(np.arange(len(chosen)), chosen.shape[1])[order]
    asked = np.bincount(flat.reshape(-1))
    groups = np.split(queries, np.cumsum(asked)[:-1])
    work = np.cumsum(asked * (1 + np.array(source.segment.model.rows.counts)[numbers]))
    share = np.minimum((work - 1) * count // work[-1], count - 1)
    pairs = list(zip(numbers.tolist(), groups, strict=True))
    return [tuple(p for p, s in zip(pairs, share, strict=True) if s == i) for i in range(count)]


def _numbered(
    pairs: Sequence[PartitionQueries],
) -> tuple[npt.NDArray[np.int64], list[PartitionQueries]]:
    """Return the queries of some partitions, and the partitions with places among these."""
    asked = np.unique(np.concatenate([queries for _, queries in pairs]))
    return asked, [(number, np.searchsorted(asked, queries)) for number, queries in pairs]


def _fragments_of(
    snapshot: Snapshot, index: SearchedIndex, *, are_covered: bool
) -> tuple[FragmentId, ...]:
    """Return the fragments that an index covers, or the others."""
    covered = index.covered
    return tuple(f.id for f in snapshot.manifest.fragments if (f.id in covered) is are_covered)
