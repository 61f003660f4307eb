"""Result of a batch search from what its tasks found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.format.rowids.segment import U64Array
from lancelake.index.vector.metric import Distances
from lancelake.index.vector.top_rows import NearestRows
from lancelake.scan.nearest import DISTANCE, QUERY_INDEX
from lancelake.scan.scored_rows import SearchedRows
from lancelake.scan.search.found_rows import ADDRESS, NO_SEGMENT, SEGMENT, STORED_ID
from lancelake.scan.search.query_tasks import BatchSearch
from lancelake.scan.vector_search.indexed import candidate_count
from lancelake.scan.vector_search.refine import add_refined
from lancelake.scan.vector_search.sources import searched_index
from lancelake.scan.vector_search.target import resolve_target

RANKED = pa.schema([(QUERY_INDEX, pa.int64()), (ADDRESS, pa.int64()), (DISTANCE, pa.float32())])
"""Columns of the rows of the result."""
_ROWS_AT_ONCE = 1 << 17
Places = npt.NDArray[np.int64]


def merged(search: BatchSearch, found: pa.Table) -> pa.Table:
    """Return the rows of the result for the queries of `found`, with the columns of `RANKED`.

    `found` has all rows that partial tasks found for these queries. As in a single search, the
    candidates of each segment are ranked by their distances and ids and refined if that is wanted,
    the rows of all segments are ranked by distances and addresses, and a filter on the result is
    applied last.
    """
    numbers, places = np.unique(found.column(QUERY_INDEX).to_numpy(), return_inverse=True)
    segments = found.column(SEGMENT).to_numpy().astype(np.int64)
    groups = places * (segments.max(initial=0) + 2) + segments - NO_SEGMENT
    distances = found.column(DISTANCE).to_numpy()
    ids = found.column(STORED_ID).to_numpy()
    count = candidate_count(search.nearest)
    chosen = _first(groups, distances, ids, count)
    rows = _Rows(
        places[chosen],
        found.column(ADDRESS).to_numpy()[chosen].astype(np.uint64),
        distances[chosen],
    )
    if search.nearest.refine_factor is not None:
        rows = _refined(search, numbers, rows, segments[chosen] != NO_SEGMENT)
    rows = rows.at(_first(rows.places, rows.distances, rows.addresses, search.nearest.k))
    return _filtered(search, numbers[rows.places], rows)


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

    def at(self, chosen: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> _Rows:
        return _Rows(self.places[chosen], self.addresses[chosen], self.distances[chosen])


def _first(
    groups: Places, distances: Distances, ties: npt.NDArray[np.integer], count: int
) -> npt.NDArray[np.int64]:
    """Return the nearest `count` rows of each group, in order."""
    order = np.lexsort((ties, distances, groups))
    ordered = groups[order]
    ranks = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return order[ranks < count]


def _refined(
    search: BatchSearch, numbers: Places, rows: _Rows, are_candidates: npt.NDArray[np.bool_]
) -> _Rows:
    """Return rows with exact distances; those that are not candidates have them."""
    snapshot = search.snapshot
    nearest = replace(search.nearest, queries=search.nearest.queries[numbers], has_several=True)
    target = resolve_target(snapshot, nearest)
    index = searched_index(snapshot, target, nearest, only_indexed=False)
    exact, rough = rows.at(~are_candidates), rows.at(are_candidates)
    if index is None or not len(rough.places):
        return exact
    by_query = np.argsort(rough.places, kind="stable")
    bounds = np.searchsorted(rough.places[by_query], np.arange(1, len(numbers)))
    candidates = np.split(rough.addresses[by_query], bounds)
    found = NearestRows(len(numbers), nearest.k, nearest.within)
    add_refined(snapshot, target, index.metric, nearest, candidates, found)
    ranked = [found.result(place) for place in range(len(numbers))]
    counts = [len(each) for each in ranked]
    return _Rows(
        np.concatenate([exact.places, np.repeat(np.arange(len(numbers)), counts)]),
        np.concatenate([exact.addresses, *(each.ids for each in ranked)]),
        np.concatenate([exact.distances, *(each.distances for each in ranked)]),
    )


def _filtered(search: BatchSearch, queries: Places, rows: _Rows) -> pa.Table:
    found = SearchedRows(
        snapshot=search.snapshot,
        addresses=rows.addresses,
        scores={
            QUERY_INDEX: pa.array(queries, pa.int32()),
            DISTANCE: pa.array(rows.distances, pa.float32()),
        },
    )
    if search.filter is not None and not search.prefilter and len(found):
        found = found.matching(search.filter)
    columns = [
        found.scores[QUERY_INDEX].cast(pa.int64()),
        pa.array(found.addresses.astype(np.int64)),
        found.scores[DISTANCE],
    ]
    return pa.table(columns, schema=RANKED)
