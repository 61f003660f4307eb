"""Plan of a vector search, its result and its description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.expr.predicate import Filter
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.index.vector.metric import Metric
from lancelake.index.vector.top_rows import NearestRows, RankedRows
from lancelake.scan.explain import explain, index_steps, measured_scan
from lancelake.scan.measure import ScanMeasure
from lancelake.scan.nearest import DISTANCE, QUERY_INDEX, Nearest
from lancelake.scan.plan import ScanPlan
from lancelake.scan.ranked_search import RankedSearch
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_mask import AllowedRows
from lancelake.scan.scored_rows import SearchedRows
from lancelake.scan.vector_search.filtered import many_rows, vector_scan
from lancelake.scan.vector_search.flat import search_rows
from lancelake.scan.vector_search.indexed import IndexedSearch
from lancelake.scan.vector_search.sources import SearchedIndex, searched_index
from lancelake.scan.vector_search.target import VectorTarget, resolve_target


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSearch:
    """A search for the nearest rows of one version."""

    snapshot: Snapshot
    request: ScanRequest
    nearest: Nearest
    target: VectorTarget
    metric: Metric
    index: SearchedIndex | None
    mask: AllowedRows | None

    @property
    def is_batch(self) -> bool:
        """Whether several queries are searched independently."""
        return self.nearest.has_several and not self.target.type.is_multi

    @property
    def num_fragments(self) -> int:
        """Number of fragments to scan."""
        return len(self._uncovered())

    def steps(self, *, verbose: bool, measure: ScanMeasure | None) -> list[str]:
        """Describe the steps of the search, the last one first."""
        count = "" if measure is None else f", {measured_scan(measure)}"
        left = self._uncovered()
        steps: list[str] = []
        if left or self.index is None:
            steps.append(
                f"KNNVectorDistance: column={self.target.path}, k={self.nearest.k}, "
                f"metric={self.metric.value}, queries={len(self.nearest.queries)}{count}"
            )
        if self.index is not None:
            steps.append(self._described(self.index) + ("" if steps else count))
            steps += self._prefilter_steps(self.index, verbose=verbose)
        if left:
            scan = self._rows_to_scan(left)
            steps += explain(scan, verbose=verbose, read="LanceScan").splitlines()
        return steps

    def _described(self, index: SearchedIndex) -> str:
        most = self.nearest.maximum_nprobes
        return (
            f"ANNSubIndex: name={index.name}({index.type}), k={self.nearest.k}, "
            f"deltas={len(index.sources)}, metric={index.metric.shown}, "
            f"minimum_nprobes={self.nearest.minimum_nprobes or 'auto'}, "
            f"maximum_nprobes={'None' if most is None else f'Some({most})'}, "
            f"refine_factor={self.nearest.refine_factor}"
        )

    def _prefilter_steps(self, index: SearchedIndex, *, verbose: bool) -> list[str]:
        """Describe how the rows of the index that match the filter are found."""
        covered = [i for i in self._fragments() if i in index.covered]
        if self._prefilter is None or not covered:
            return []
        scan = self._rows_to_scan(covered)
        if scan.index_search is not None and scan.index_search.covered.issuperset(BitMap(covered)):
            return index_steps(scan)
        return explain(scan, verbose=verbose).splitlines()

    def found(self) -> SearchedRows:
        """Search, and return the rows of the result, nearest first."""
        return self._sliced(self._filtered())

    def _filtered(self) -> SearchedRows:
        queries = self.nearest.queries if self.is_batch else self.nearest.queries[:1]
        nearest = NearestRows(len(queries), self.nearest.k, self.nearest.within)
        left = self._uncovered()
        if self.index is not None:
            left += self._search_index(self.index, nearest)
        if left:
            args = self.target.type, self.metric, self.nearest.queries
            search_rows(self._rows_to_scan(left), *args, nearest)
        ranked = [nearest.result(place) for place in range(len(queries))]
        found = self._searched(ranked)
        if self.request.filter is not None and not self.request.prefilter and len(found):
            return found.matching(self.request.filter)
        return found

    def _search_index(self, index: SearchedIndex, nearest: NearestRows) -> list[FragmentId]:
        """Search the rows that the index covers; return fragments to be scanned instead."""
        covered = [i for i in self._fragments() if i in index.covered]
        rows: dict[int, BitMap] | None = None
        is_part = self.request.fragment_ids is not None
        if covered and (self._prefilter is not None or self.mask is not None or is_part):
            rows = many_rows(self._rows_to_scan(covered), self.nearest.k)
            if rows is None:
                return covered
        IndexedSearch(self.snapshot, self.target, self.nearest, index).run(rows, nearest)
        return []

    def _uncovered(self) -> list[FragmentId]:
        """Return the fragments that are scanned because no index covers them."""
        if self.request.fast_search:
            return []
        covered = BitMap() if self.index is None else self.index.covered
        return [i for i in self._fragments() if i not in covered]

    def _fragments(self) -> Sequence[FragmentId]:
        chosen = self.request.fragment_ids
        if chosen is not None:
            return chosen
        return [FragmentId(i) for i in FragmentList.of(self.snapshot.manifest.fragments).ids]

    @property
    def _prefilter(self) -> Filter | None:
        return self.request.filter if self.request.prefilter else None

    def _rows_to_scan(self, fragments: Sequence[FragmentId]) -> ScanPlan:
        return vector_scan(
            self.snapshot,
            self.target,
            fragments,
            self._prefilter,
            use_scalar_index=self.request.use_scalar_index,
            mask=self.mask,
        )

    def _searched(self, ranked: Sequence[RankedRows]) -> SearchedRows:
        distances = np.concatenate([rows.distances for rows in ranked])
        scores = {DISTANCE: pa.array(distances, pa.float32())}
        if self.is_batch:
            places = np.repeat(np.arange(len(ranked)), [len(rows) for rows in ranked])
            scores = {QUERY_INDEX: pa.array(places, pa.int32()), **scores}
        return SearchedRows(
            snapshot=self.snapshot,
            addresses=np.concatenate([rows.ids for rows in ranked]),
            scores=scores,
        )

    def _sliced(self, found: SearchedRows) -> SearchedRows:
        start, limit = self.request.offset or 0, self.request.limit
        if not start and limit is None:
            return found
        stop = len(found) if limit is None else min(len(found), start + limit)
        return found.only(np.arange(start, max(start, stop)))


@names_table
def plan_vector_search(
    snapshot: Snapshot, request: ScanRequest, mask: AllowedRows | None = None
) -> RankedSearch:
    """Plan a search of one version."""
    nearest = request.nearest
    if request.include_deleted_rows:
        raise UnsupportedError("Cannot include deleted rows in a vector search")
    if nearest is None:
        raise InvalidRequestError("a vector search needs a query")
    target = resolve_target(snapshot, nearest)
    index = searched_index(snapshot, target, nearest, only_indexed=request.fast_search)
    metric = nearest.metric or target.type.default_metric
    if index is not None:
        metric = index.metric
    target.ensure_metric(metric)
    request = replace(request, nearest=None)
    search = VectorSearch(
        snapshot=snapshot,
        request=request,
        nearest=nearest,
        target=target,
        metric=metric,
        index=index,
        mask=mask,
    )
    queries = {QUERY_INDEX: pa.int32()} if search.is_batch else {}
    return RankedSearch.of(snapshot, request, search, {**queries, DISTANCE: pa.float32()})
