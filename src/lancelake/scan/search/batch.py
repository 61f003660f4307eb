"""Search of many query vectors as tasks, each of some fragments, partitions or queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest

import numpy as np

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import UnsupportedError
from lancelake.format.ids import FragmentId
from lancelake.scan.count import live_rows
from lancelake.scan.prepared import prepare
from lancelake.scan.search.partition_tasks import PartitionTask, split_by_partitions
from lancelake.scan.search.query_tasks import BatchSearch, BatchSearchTask
from lancelake.scan.search.stored_vectors import VectorColumn


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

    An exact search is split by fragments: each task reads its vectors once for all queries. A
    search by an index is split by partitions: each is opened by one task, for all queries that
    search it. What such partial tasks find is merged by `merged`. Where the partitions of a query
    depend on what is found in others, or the index is small beside the number of queries, a search
    is split by queries, so that each task searches as a single process would.
    """
    snapshot, nearest = search.snapshot, search.nearest
    column = ensure_batch(search)
    if not len(nearest.queries):
        return []
    prepare(snapshot, search.request(nearest))
    partial = search.before_filter
    if not (nearest.use_index and column.is_indexed):
        every = [fragment.id for fragment in snapshot.manifest.fragments]
        return _by_fragments(partial, _groups(snapshot, every, parallelism))
    split = split_by_partitions(partial, parallelism)
    if split is None:
        return _by_queries(search, parallelism)
    exact = replace(partial, nearest=split.exact)
    tasks: list[BatchSearchTask | PartitionTask] = [*split.tasks]
    if partial.filter is not None:
        groups = _groups(snapshot, split.covered, len(split.tasks))
        instead = _by_fragments(exact, groups)
        shares = zip_longest(split.tasks, instead)
        tasks = [replace(task, instead=share) for task, share in shares]
    return [*tasks, *_by_fragments(exact, _groups(snapshot, split.uncovered, parallelism))]


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
