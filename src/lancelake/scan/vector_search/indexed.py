"""Vector search by an index: near partitions, then exact distances of the best if wanted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.format.rowids.segment import U64Array
from lancelake.index.vector.top_rows import NearestRows
from lancelake.scan.index_search.sources import named_failures
from lancelake.scan.nearest import Nearest
from lancelake.scan.vector_search.gate import RowGate, filtered_gate, live_gate
from lancelake.scan.vector_search.refine import add_refined
from lancelake.scan.vector_search.sources import (
    WITHOUT_INDEX,
    SearchedIndex,
    VectorSource,
    probes_of,
)
from lancelake.scan.vector_search.target import VectorTarget


class IndexedSearch:
    """A search of the rows that an index covers."""

    def __init__(
        self, snapshot: Snapshot, target: VectorTarget, nearest: Nearest, index: SearchedIndex
    ) -> None:
        self._snapshot = snapshot
        self._target = target
        self._nearest = nearest
        self._index = index

    def run(self, rows: dict[int, BitMap] | None, found: NearestRows) -> None:
        """Add the nearest rows; only those of `rows`, by fragment, if given."""
        for source in self._index.sources:
            gate = (
                live_gate(self._snapshot, source)
                if rows is None
                else filtered_gate(self._snapshot, source, rows)
            )
            with named_failures(self._index.name, WITHOUT_INDEX):
                self._search(source, gate, found)

    def _search(self, source: VectorSource, gate: RowGate, found: NearestRows) -> None:
        nearest, segment = self._nearest, source.segment
        probes = probes_of(nearest, len(segment.model.partitions))
        wanted = candidate_count(nearest)
        if self._target.type.is_multi:
            ids = segment.candidates(nearest.queries, probes, gate, wanted)
            self._refine([gate.addresses(self._snapshot, ids)], found)
            return
        count = len(nearest.queries)
        if nearest.refine_factor is None:
            ranked = NearestRows(count, nearest.k, nearest.within)
        else:
            ranked = NearestRows(count, wanted)
        segment.search(nearest.queries, probes, ranked, gate)
        results = [ranked.result(place) for place in range(count)]
        every = gate.addresses(self._snapshot, np.concatenate([rows.ids for rows in results]))
        addresses = np.split(every, np.cumsum([len(rows) for rows in results])[:-1])
        if nearest.refine_factor is not None:
            self._refine(addresses, found)
            return
        for place, rows in enumerate(results):
            found.add(place, addresses[place], rows.distances)

    def _refine(self, candidates: Sequence[U64Array], found: NearestRows) -> None:
        metric = self._index.metric
        add_refined(self._snapshot, self._target, metric, self._nearest, candidates, found)


def candidate_count(nearest: Nearest) -> int:
    """Return how many rows of each segment are ranked: more than `k` if they are refined."""
    return nearest.k * (nearest.refine_factor or 1)
