"""Exact distances of candidates that an index found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lancelake.commit.snapshot import Snapshot
from lancelake.format.rowids.segment import U64Array
from lancelake.index.vector.metric import Metric
from lancelake.index.vector.top_rows import NearestRows
from lancelake.scan.nearest import Nearest
from lancelake.scan.request import ScanRequest
from lancelake.scan.scored_rows import rows_at
from lancelake.scan.vector_search.flat import add_values
from lancelake.scan.vector_search.target import VectorTarget

# Stored vectors of so many rows are read at once.
_ROWS_AT_ONCE = 1 << 15


def add_refined(
    snapshot: Snapshot,
    target: VectorTarget,
    metric: Metric,
    nearest: Nearest,
    candidates: Sequence[U64Array],
    found: NearestRows,
) -> None:
    """Add candidates of each query, by their addresses, with the distances of stored vectors."""
    dtype = target.type
    queries = dtype.query_matrix(nearest.queries)
    every = np.unique(np.concatenate(candidates))
    request = ScanRequest(columns=(target.path,))
    for start in range(0, len(every), _ROWS_AT_ONCE):
        part = every[start : start + _ROWS_AT_ONCE]
        values = rows_at(snapshot, part, request).column(0).combine_chunks()
        if dtype.is_multi:
            add_values(values, part, dtype, metric, queries, found)
            continue
        for place, chosen in enumerate(candidates):
            at = np.searchsorted(part, chosen[np.isin(chosen, part)])
            single = NearestRows(1, found.k, nearest.within)
            add_values(values.take(at), part[at], dtype, metric, queries[place : place + 1], single)
            ranked = single.result(0)
            found.add(place, ranked.ids, ranked.distances)
