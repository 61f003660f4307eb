"""Search of many vectors at once, in tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import MetaColumn
from lancelake.errors import UnsupportedError, naming
from lancelake.expr.predicate import Filter
from lancelake.format.ids import FragmentId
from lancelake.format.rowids import U64Array
from lancelake.index.vector.segment import PartitionQueries
from lancelake.index.vector.vectors import ANY_DISTANCE, Distances, NearestRows
from lancelake.scan.index_search.sources import naming_index
from lancelake.scan.live_rows import live_rows
from lancelake.scan.request import DISTANCE, QUERY_INDEX, Nearest, SearchRequest
from lancelake.scan.search import vector_search
from lancelake.scan.search.prepared import prepare
from lancelake.scan.search.ranked import SearchedRows
from lancelake.scan.search.recall import VectorColumn

ADDRESS = MetaColumn.ROW_ADDRESS.value
SEGMENT = "segment"
"""Number of the segment of an index that has the row; `NO_SEGMENT` if its vector was read."""
STORED_ID = "stored_id"
"""Id of the row in the segment, by which rows of equal distances are ordered there."""
NO_SEGMENT = -1
FOUND = pa.schema(
    [
        (QUERY_INDEX, pa.int64()),
        (SEGMENT, pa.int32()),
        (STORED_ID, pa.int64()),
        (ADDRESS, pa.int64()),
        (DISTANCE, pa.float32()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSearch:
    """The nearest rows of each of several query vectors, searched independently."""

    snapshot: Snapshot
    nearest: Nearest
    filter: Filter | None = None
    prefilter: bool = True
    fast_search: bool = False

    @property
    def before_filter(self) -> BatchSearch:
        """The search without a filter that is applied to its result."""
        return self if self.prefilter else replace(self, filter=None, prefilter=True)

    @property
    def named(self) -> naming:
        """What names the table in errors of work that is planned, or runs, apart from it."""
        return naming(self.snapshot.location.uri, self.snapshot.version)

    def request(self, nearest: Nearest) -> SearchRequest:
        """Return the scan request for some of the queries."""
        return SearchRequest(
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
        with self.search.named, prepare(self.search.snapshot, request).run() as reader:
            rows = reader.read_all()
        places = rows.column(QUERY_INDEX).to_numpy().astype(np.int64) + self.first_query
        addresses = rows.column(ADDRESS).to_numpy().astype(np.int64)
        none = np.full(len(places), NO_SEGMENT, dtype=np.int32)
        columns = [places, none, addresses, addresses, rows.column(DISTANCE)]
        return pa.table(columns, schema=FOUND)


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
        target = vector_search.resolve_target(search.snapshot, search.nearest)
        index = vector_search.searched_index(
            search.snapshot, target, search.nearest, only_indexed=False
        )
        if index is None:
            return FOUND.empty_table()
        rows: dict[int, BitMap] | None = None
        if search.filter is not None:
            covered = _fragments_of(search.snapshot, index, are_covered=True)
            scan = vector_search.vector_scan(search.snapshot, target, covered, search.filter)
            rows = vector_search.many_rows(scan, search.nearest.k)
            if rows is None:
                return FOUND.empty_table() if self.instead is None else self.instead.run()
        with naming_index(index.name, vector_search.WITHOUT_INDEX):
            tables = [
                self._search(number, index.sources[number], pairs, rows)
                for number, pairs in enumerate(self.segments)
                if pairs
            ]
        return pa.concat_tables(tables) if tables else FOUND.empty_table()

    def _search(
        self,
        number: int,
        source: vector_search.VectorSource,
        pairs: Pairs,
        rows: dict[int, BitMap] | None,
    ) -> pa.Table:
        snapshot, nearest = self.search.snapshot, self.search.nearest
        gate = vector_search.live_gate(snapshot, source)
        if rows is not None:
            gate = vector_search.filtered_gate(snapshot, source, rows)
        asked, partitions = _number(pairs)
        # Distances of candidates are not exact; their range is checked once they are refined.
        within = nearest.within if nearest.refine_factor is None else ANY_DISTANCE
        near = NearestRows(len(asked), vector_search.candidate_count(nearest), within)
        source.segment.search_partitions(nearest.queries[asked], partitions, near, gate)
        ranked = [near.result(place) for place in range(len(asked))]
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
    target = vector_search.resolve_target(snapshot, nearest)
    index = vector_search.searched_index(snapshot, target, nearest, only_indexed=search.fast_search)
    if index is None:
        return None
    uncovered = () if search.fast_search else _fragments_of(snapshot, index, are_covered=False)
    searched = [each for source in index.sources if (each := _chosen(search, source)) is not None]
    if len(searched) < len(index.sources):
        return None
    if not uncovered and _is_read_soon(index, searched, parallelism):
        return None
    pairs = zip(index.sources, searched, strict=True)
    shares = [_shares(source, each, parallelism) for source, each in pairs]
    tasks = (PartitionTask(search=search, segments=each) for each in zip(*shares, strict=True))
    return PartitionSplit(
        tasks=tuple(task for task in tasks if any(task.segments)),
        covered=_fragments_of(snapshot, index, are_covered=True),
        uncovered=uncovered,
        exact=replace(nearest, use_index=False, metric=index.metric),
    )


def _chosen(search: BatchSearch, source: vector_search.VectorSource) -> Chosen | None:
    """Return the partitions that each query searches; None if that is known only later."""
    snapshot, nearest, segment = search.snapshot, search.nearest, source.segment
    probes = vector_search.probes_of(nearest, len(segment.model.partitions))
    partitions = segment.nearest_partitions(nearest.queries, probes.first)
    if probes.first == probes.most:
        return partitions
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
    least = counts[partitions].sum(axis=1).min() - (stored - live)
    return partitions if is_whole and least >= vector_search.candidate_count(nearest) else None


def _is_read_soon(
    index: vector_search.SearchedIndex, chosen_parts: Sequence[Chosen], tasks: int
) -> bool:
    """Whether tasks read all rows of an index in less time than the distances take."""
    counts = [np.array(source.segment.model.rows.counts) for source in index.sources]
    rows = sum(int(each.sum()) for each in counts)
    pairs = zip(counts, chosen_parts, strict=True)
    distances = sum(int(each[searched].sum()) for each, searched in pairs)
    return rows * tasks * _DISTANCES_PER_READ <= distances


def _shares(source: vector_search.VectorSource, partitions: Chosen, count: int) -> list[Pairs]:
    """Distribute partitions, in their order, to shares of about the same number of distances."""
    numbers, flat = np.unique(partitions, return_inverse=True)
    order = np.argsort(flat.reshape(-1), kind="stable")
    queries = np.repeat(np.arange(len(partitions)), partitions.shape[1])[order]
    asked = np.bincount(flat.reshape(-1))
    groups = np.split(queries, np.cumsum(asked)[:-1])
    work = np.cumsum(asked * (1 + np.array(source.segment.model.rows.counts)[numbers]))
    share = np.minimum((work - 1) * count // work[-1], count - 1)
    pairs = list(zip(numbers.tolist(), groups, strict=True))
    return [tuple(p for p, s in zip(pairs, share, strict=True) if s == i) for i in range(count)]


def _number(
    pairs: Sequence[PartitionQueries],
) -> tuple[npt.NDArray[np.int64], list[PartitionQueries]]:
    """Return the queries of some partitions, and the partitions with places among these."""
    asked = np.unique(np.concatenate([queries for _, queries in pairs]))
    return asked, [(number, np.searchsorted(asked, queries)) for number, queries in pairs]


def _fragments_of(
    snapshot: Snapshot, index: vector_search.SearchedIndex, *, are_covered: bool
) -> tuple[FragmentId, ...]:
    """Return the fragments that an index covers, or the others."""
    covered = index.covered
    return tuple(f.id for f in snapshot.manifest.fragments if (f.id in covered) is are_covered)


def ensure_batch(search: BatchSearch) -> VectorColumn:
    """Return the column of a batch; refuse a request that no query could satisfy.

    Multivectors are refused, since their queries are several vectors.
    """
    nearest = search.nearest
    with search.named:
        column = VectorColumn.of(search.snapshot, nearest.column)
        if column.type.is_multi:
            name = repr(nearest.column)
            problem = f"column {name} has multivectors, which are searched one at a time"
            raise UnsupportedError(problem)
        any_vector = np.zeros((1, column.type.dimension), dtype=np.float32)
        prepare(search.snapshot, search.request(replace(nearest, queries=any_vector)))
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
    with search.named:
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
    wanted = set(fragments)
    fragments_of = [f for f in snapshot.manifest.fragments if f.id in wanted]
    rows = {f.id: live_rows(*places, f) for f in fragments_of}
    groups: list[list[FragmentId]] = [[] for _ in range(min(count, len(rows)))]
    sizes = [0] * len(groups)
    for fragment in sorted(rows, key=lambda number: (-rows[number], number)):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(fragment)
        sizes[smallest] += rows[fragment]
    return [tuple(sorted(group)) for group in groups]


RANKED = pa.schema([(QUERY_INDEX, pa.int64()), (ADDRESS, pa.int64()), (DISTANCE, pa.float32())])
"""Columns of the rows of the result."""
_ROWS_AT_ONCE = 1 << 17
Places = npt.NDArray[np.int64]


def merged(search: BatchSearch, candidates: pa.Table) -> pa.Table:
    """Return the rows of the result for the queries of candidates, with the columns of `RANKED`.

    Candidates are all rows that partial tasks found for these queries. As in a single search, the
    candidates of each segment are ranked by their distances and ids and refined if that is wanted,
    the rows of all segments are ranked by distances and addresses, and a filter on the result is
    applied last.
    """
    numbers, places = np.unique(candidates.column(QUERY_INDEX).to_numpy(), return_inverse=True)
    segments = candidates.column(SEGMENT).to_numpy().astype(np.int64)
    groups = places * (segments.max(initial=0) + 2) + segments - NO_SEGMENT
    distances = candidates.column(DISTANCE).to_numpy()
    ids = candidates.column(STORED_ID).to_numpy()
    count = vector_search.candidate_count(search.nearest)
    first = _first(groups, distances, ids, count)
    rows = _Rows(
        places[first],
        candidates.column(ADDRESS).to_numpy()[first].astype(np.uint64),
        distances[first],
    )
    if search.nearest.refine_factor is not None:
        rows = _refine(search, numbers, rows, segments[first] != NO_SEGMENT)
    rows = rows.at(_first(rows.places, rows.distances, rows.addresses, search.nearest.k))
    return _filter(search, numbers[rows.places], rows)


def merged_in_order(
    search: BatchSearch, batches: Iterable[pa.RecordBatch], rows_at_once: int = _ROWS_AT_ONCE
) -> Iterator[pa.RecordBatch]:
    """Yield the result of rows that are ordered by their queries, some queries at once."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) < rows_at_once:
            continue
        whole = pa.Table.from_batches(waiting)
        queries = whole.column(QUERY_INDEX).to_numpy()
        # Rows of the last query may follow.
        stop = int(np.searchsorted(queries, queries[-1]))
        yield from merged(search, whole.slice(0, stop)).to_batches()
        waiting = whole.slice(stop).to_batches()
    if waiting:
        yield from merged(search, pa.Table.from_batches(waiting)).to_batches()


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of queries, which are given by their places among the merged ones."""

    places: Places
    addresses: U64Array
    distances: Distances

    def at(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> _Rows:
        return _Rows(self.places[rows], self.addresses[rows], self.distances[rows])


def _first(
    groups: Places, distances: Distances, ties: npt.NDArray[np.integer], count: int
) -> npt.NDArray[np.int64]:
    """Return the nearest `count` rows of each group, in order."""
    order = np.lexsort((ties, distances, groups))
    ordered = groups[order]
    ranks = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return order[ranks < count]


def _refine(
    search: BatchSearch, numbers: Places, rows: _Rows, are_candidates: npt.NDArray[np.bool_]
) -> _Rows:
    """Return rows with exact distances; those that are not candidates have them."""
    snapshot = search.snapshot
    nearest = replace(search.nearest, queries=search.nearest.queries[numbers], has_several=True)
    target = vector_search.resolve_target(snapshot, nearest)
    index = vector_search.searched_index(snapshot, target, nearest, only_indexed=False)
    exact, rough = rows.at(~are_candidates), rows.at(are_candidates)
    if index is None or not len(rough.places):
        return exact
    by_query = np.argsort(rough.places, kind="stable")
    bounds = np.searchsorted(rough.places[by_query], np.arange(1, len(numbers)))
    candidates = np.split(rough.addresses[by_query], bounds)
    near = NearestRows(len(numbers), nearest.k, nearest.within)
    vector_search.add_refined(snapshot, target, index.metric, nearest, candidates, near)
    ranked = [near.result(place) for place in range(len(numbers))]
    counts = [len(each) for each in ranked]
    return _Rows(
        np.concatenate([exact.places, np.repeat(np.arange(len(numbers)), counts)]),
        np.concatenate([exact.addresses, *(each.ids for each in ranked)]),
        np.concatenate([exact.distances, *(each.distances for each in ranked)]),
    )


def _filter(search: BatchSearch, queries: Places, rows: _Rows) -> pa.Table:
    result = SearchedRows(
        snapshot=search.snapshot,
        addresses=rows.addresses,
        scores={
            QUERY_INDEX: pa.array(queries, pa.int32()),
            DISTANCE: pa.array(rows.distances, pa.float32()),
        },
    )
    if search.filter is not None and not search.prefilter and len(result):
        result = result.matching(search.filter)
    columns = [
        result.scores[QUERY_INDEX].cast(pa.int64()),
        pa.array(result.addresses.astype(np.int64)),
        result.scores[DISTANCE],
    ]
    return pa.table(columns, schema=RANKED)
