"""Search of many query vectors as tasks, each of some fragments or of some queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import UnsupportedError
from lancelake.expr.predicate import Filter
from lancelake.format.ids import FragmentId
from lancelake.scan.count import live_rows
from lancelake.scan.nearest import DISTANCE, QUERY_INDEX, Nearest
from lancelake.scan.prepared import prepare
from lancelake.scan.request import ScanRequest
from lancelake.scan.search.found_rows import ADDRESS, FOUND
from lancelake.scan.search.partition_tasks import PartitionTask, split_by_partitions
from lancelake.scan.search.stored_vectors import VectorColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSearch:
    """The nearest rows of each of several query vectors, searched independently."""

    snapshot: Snapshot
    nearest: Nearest
    filter: Filter | None = None
    prefilter: bool = True
    fast_search: bool = False

    def request(self, nearest: Nearest) -> ScanRequest:
        """Return the scan request for some of the queries."""
        return ScanRequest(
            columns=(),
            with_row_address=True,
            nearest=replace(nearest, has_several=True),
            filter=self.filter,
            prefilter=self.prefilter,
            fast_search=self.fast_search,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSearchTask:
    """Some of the queries of a batch on some fragments, or on all of them."""

    search: BatchSearch
    first_query: int
    fragment_ids: tuple[FragmentId, ...] | None

    @property
    def is_partial(self) -> bool:
        """Whether other tasks may find nearer rows of the same queries."""
        return self.fragment_ids is not None

    def run(self) -> pa.Table:
        """Return up to `k` rows of each query, with the columns of `FOUND`."""
        request = replace(self.search.request(self.search.nearest), fragment_ids=self.fragment_ids)
        with prepare(self.search.snapshot, request).run() as reader:
            found = reader.read_all()
        places = found.column(QUERY_INDEX).to_numpy().astype(np.int64) + self.first_query
        addresses = found.column(ADDRESS).to_numpy().astype(np.int64)
        return pa.table([places, addresses, found.column(DISTANCE)], schema=FOUND)


def ensure_batch(search: BatchSearch) -> VectorColumn:
    """Return the column of a batch; refuse a request that no query could satisfy.

    Multivectors are refused, since their queries are several vectors.
    """
    snapshot, nearest = search.snapshot, search.nearest
    column = VectorColumn.of(snapshot, nearest.column)
    if column.type.is_multi:
        problem = f"column {nearest.column!r} has multivectors, which are searched one at a time"
        raise UnsupportedError(problem).at(snapshot.location.uri, snapshot.version)
    any_vector = np.zeros((1, column.type.dimension), dtype=np.float32)
    prepare(snapshot, search.request(replace(nearest, queries=any_vector)))
    return column


def batch_tasks(search: BatchSearch, parallelism: int) -> Sequence[BatchSearchTask | PartitionTask]:
    """Split a batch into about as many tasks as run in parallel.

    An exact search is split by fragments: each task reads its vectors once for all queries, and
    the nearest rows of all tasks together are those of the whole search. A search by an index is
    split by partitions: each is opened by one task, for all queries that search it. Where the
    partitions of a query depend on what is found in others, or with a filter on the result, it is
    split by queries, so that each task searches as a single process would.
    """
    snapshot, nearest = search.snapshot, search.nearest
    column = ensure_batch(search)
    if not len(nearest.queries):
        return []
    prepare(snapshot, search.request(nearest))
    is_indexed = nearest.use_index and column.is_indexed
    if is_indexed and search.filter is None:
        split = split_by_partitions(snapshot, nearest, parallelism, fast_search=search.fast_search)
        if split is not None:
            exact = replace(search, nearest=split.exact)
            left = _groups(snapshot, split.uncovered, parallelism)
            tasks: list[BatchSearchTask | PartitionTask] = [*split.tasks]
            return [*tasks, *_by_fragments(exact, left)]
    if is_indexed or (search.filter is not None and not search.prefilter):
        return _by_queries(search, parallelism)
    every = [fragment.id for fragment in snapshot.manifest.fragments]
    return _by_fragments(search, _groups(snapshot, every, parallelism))


def _by_fragments(
    search: BatchSearch, groups: Sequence[tuple[FragmentId, ...]]
) -> list[BatchSearchTask]:
    return [BatchSearchTask(search=search, first_query=0, fragment_ids=group) for group in groups]


def _by_queries(search: BatchSearch, parallelism: int) -> list[BatchSearchTask]:
    queries = search.nearest.queries
    bounds = np.linspace(0, len(queries), min(parallelism, len(queries)) + 1).astype(int)
    return [
        BatchSearchTask(
            search=replace(search, nearest=replace(search.nearest, queries=queries[start:stop])),
            first_query=start,
            fragment_ids=None,
        )
        for start, stop in pairwise(bounds.tolist())
    ]


def _groups(
    snapshot: Snapshot, fragments: Sequence[FragmentId], count: int
) -> Sequence[tuple[FragmentId, ...]]:
    """Distribute fragments to groups of about the same number of rows, the largest first."""
    places = snapshot.files, snapshot.manifest_at
    chosen = set(fragments)
    found = [f for f in snapshot.manifest.fragments if f.id in chosen]
    rows = {f.id: live_rows(*places, f) for f in found}
    groups: list[list[FragmentId]] = [[] for _ in range(min(count, len(rows)))]
    sizes = [0] * len(groups)
    for fragment in sorted(rows, key=lambda number: (-rows[number], number)):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(fragment)
        sizes[smallest] += rows[fragment]
    return [tuple(sorted(group)) for group in groups]
