"""Vector search: by an index, and by reading vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ColumnTypeError, InvalidRequestError, UnsupportedError
from lancelake.expr.condition import Column
from lancelake.expr.predicate import Filter
from lancelake.format.arrow_schema import public_field
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.rowids import U64Array
from lancelake.format.schema import Field, split_path
from lancelake.index.kind import IdKind, indexed_type
from lancelake.index.row_sets import BoolArray, RowIds
from lancelake.index.stored_segment import Coverage
from lancelake.index.vector.segment import Probes, VectorSegment
from lancelake.index.vector.vectors import (
    Distances,
    Matrix,
    Metric,
    NearestRows,
    RankedRows,
    Vectors,
    VectorType,
    distances,
    nearest_vectors,
)
from lancelake.scan.execute import kept_offsets
from lancelake.scan.index_search.sources import IndexSources, PerSnapshot, naming_index
from lancelake.scan.plan import ScanMeasure, ScanPlan, explain, index_steps, measured_scan
from lancelake.scan.planner import plan
from lancelake.scan.request import DISTANCE, QUERY_INDEX, Nearest, ScanRequest, SearchRequest
from lancelake.scan.row_lookup import AllowedRows, addresses_of, ids_of_rows, live_ids, plan_masked
from lancelake.scan.search.ranked import RankedSearch, SearchedRows, rows_at
from lancelake.scan.stream import run


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorTarget:
    """A vector column."""

    path: str
    field_id: FieldId
    type: VectorType

    def ensure_metric(self, metric: Metric) -> None:
        """Refuse a metric that is not defined for the vectors."""
        if not self.type.supports(metric):
            problem = f"Distance type {metric.value} does not support {self.type.element.value}"
            raise InvalidRequestError(f"{problem} vectors of column {self.path!r}")


def resolve_target(snapshot: Snapshot, nearest: Nearest) -> VectorTarget:
    """Find the column of a search; refuse one without vectors, and queries of another size."""
    trail = _trail(snapshot, nearest.column)
    dtype = indexed_type(trail[-1])
    vector_type = VectorType.of(dtype)
    if vector_type is None:
        shown = public_field(trail[-1]).type
        problem = f"Query column {nearest.column} must be a vector. Got {shown}."
        raise ColumnTypeError(problem, column=nearest.column)
    size = nearest.queries.shape[1]
    if size != vector_type.dimension:
        problem = (
            f"Query vector size {size} does not match index column size {vector_type.dimension}"
        )
        raise InvalidRequestError(problem, column=nearest.column)
    is_batch = nearest.has_several and not vector_type.is_multi
    if is_batch and QUERY_INDEX in snapshot.manifest.schema.names:
        problem = f"several queries need the column name {QUERY_INDEX!r}, which the table has"
        raise InvalidRequestError(problem)
    path = snapshot.manifest.schema.path_of(trail[-1].id) or nearest.column
    target = VectorTarget(path=path, field_id=FieldId(trail[-1].id), type=vector_type)
    if nearest.metric is not None:
        target.ensure_metric(nearest.metric)
    return target


def _trail(snapshot: Snapshot, column: str) -> tuple[Field, ...]:
    schema = snapshot.manifest.schema
    trail = schema.find(column)
    if trail is None:
        names = [name for name in schema.names if name.lower() == column.lower()]
        trail = schema.find(names[0]) if len(names) == 1 else None
    if trail is None:
        problem = f"Embedding column {column} is not in the dataset"
        raise InvalidRequestError(problem, column=column)
    return trail


# From so many queries on, products of matrices find candidates faster than differences.
_MANY_QUERIES = 8
_MORE_CANDIDATES = 16


def search_rows(
    plan: ScanPlan,
    dtype: VectorType,
    metric: Metric,
    queries: npt.NDArray[np.float32],
    nearest: NearestRows,
) -> None:
    """Add the rows of a plan, whose first column are vectors and whose last are addresses."""
    wanted = dtype.query_matrix(queries)
    with run(plan) as reader:
        for batch in reader:
            addresses = batch.column(batch.num_columns - 1).to_numpy()
            add_values(batch.column(0), addresses, dtype, metric, wanted, nearest)


def add_values(
    values: pa.Array,
    ids: U64Array,
    dtype: VectorType,
    metric: Metric,
    queries: Matrix,
    nearest: NearestRows,
) -> None:
    """Add rows with their vectors; `queries` are in the type of `VectorType.query_matrix`."""
    vectors = dtype.vectors(values)
    if not len(vectors.rows):
        return
    if dtype.is_multi:
        rows, row_distances = _late_interaction(metric, queries, vectors)
        nearest.add(0, ids[rows], row_distances)
        return
    if metric is Metric.L2 and nearest.is_unbounded:
        _add_candidates(vectors.matrix, ids[vectors.rows], queries, nearest)
    else:
        row_distances = distances(metric, queries, vectors.matrix)
        for place in range(len(queries)):
            nearest.add(place, ids[vectors.rows], row_distances[place])


def _late_interaction(
    metric: Metric, queries: Matrix, vectors: Vectors
) -> tuple[npt.NDArray[np.int64], Distances]:
    """Return for each row the sum, over the query's vectors, of the distance to its nearest.

    Vectors whose distance is not a number are ignored where the row has others.
    """
    rows, starts = np.unique(vectors.rows, return_index=True)
    all_distances = distances(metric, queries, vectors.matrix)
    return rows, np.fmin.reduceat(all_distances, starts, axis=1).sum(axis=0, dtype=np.float32)


def _add_candidates(vectors: Matrix, ids: U64Array, queries: Matrix, nearest: NearestRows) -> None:
    """Add rows that are nearest by a faster computation, with their exact distances."""
    count = min(len(ids), nearest.k + _MORE_CANDIDATES)
    for place, rows in enumerate(_candidates(vectors, queries, count)):
        near = rows[rows >= 0]
        exact = distances(Metric.L2, queries[place : place + 1], vectors[near])[0]
        nearest.add(place, ids[near], exact)


def _candidates(vectors: Matrix, queries: Matrix, count: int) -> npt.NDArray[np.int64]:
    """Return the places of about the nearest vectors of each query, negative without one."""
    if len(queries) < _MANY_QUERIES:
        top = nearest_vectors(Metric.L2, queries, vectors, count)
        if top is not None:
            return top[1]
    with np.errstate(over="ignore", invalid="ignore"):
        rough = np.einsum("ij,ij->i", vectors, vectors) - 2 * (queries @ vectors.T)
    if count == len(vectors):
        return np.broadcast_to(np.arange(count), (len(queries), count))
    return np.argpartition(rough, count, axis=1)[:, :count]


# Stored vectors of so many rows are read at once.
_ROWS_AT_ONCE = 1 << 15


def add_refined(
    snapshot: Snapshot,
    target: VectorTarget,
    metric: Metric,
    nearest: Nearest,
    candidates: Sequence[U64Array],
    exact: NearestRows,
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
            add_values(values, part, dtype, metric, queries, exact)
            continue
        for place, rows in enumerate(candidates):
            at = np.searchsorted(part, rows[np.isin(rows, part)])
            single = NearestRows(1, exact.k, nearest.within)
            add_values(values.take(at), part[at], dtype, metric, queries[place : place + 1], single)
            ranked = single.result(0)
            exact.add(place, ranked.ids, ranked.distances)


_FEW_ROWS = 2048


def vector_scan(
    snapshot: Snapshot,
    target: VectorTarget,
    fragments: Sequence[FragmentId],
    filter: Filter | None,
    *,
    use_scalar_index: bool = True,
    mask: AllowedRows | None = None,
) -> ScanPlan:
    """Plan a scan of the vectors of rows that match, with their addresses."""
    request = ScanRequest(
        columns=(target.path,),
        filter=filter,
        with_row_address=True,
        use_scalar_index=use_scalar_index,
        fragment_ids=tuple(fragments),
    )
    return plan(snapshot, request) if mask is None else plan_masked(snapshot, request, mask)


def many_rows(scan: ScanPlan, k: int) -> dict[int, BitMap] | None:
    """Return the rows of a scan by fragment; None if they are few.

    The nearest of few rows are found faster, and exactly, by reading them than by an index.
    """
    rows = {int(task.fragment.id): kept_offsets(task) for task in scan.tasks}
    return None if sum(map(len, rows.values())) <= max(_FEW_ROWS, k) else rows


# Partitions that are searched at first if a search does not say how many.
_FIRST_PROBES = 20

WITHOUT_INDEX = (
    "Search without it (use_index=False in Python, useIndex=False in Spark, --no-index at the "
    "command line), and drop the index or build it again."
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorSource:
    """A segment of an index, and the fragments of the version that it answers for."""

    segment: VectorSegment
    coverage: Coverage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchedIndex:
    """The index that answers a search."""

    name: str
    type: str
    metric: Metric
    sources: tuple[VectorSource, ...]

    @property
    def covered(self) -> BitMap:
        """Fragments that the index covers."""
        return BitMap.union(BitMap(), *(source.coverage.fragments for source in self.sources))


def searched_index(
    snapshot: Snapshot, target: VectorTarget, nearest: Nearest, *, only_indexed: bool
) -> SearchedIndex | None:
    """Return the first index of a column with the metric of a search; None to scan all rows.

    If only indexed rows are wanted, an index of another metric is an error.
    """
    indices = vector_indices(snapshot, target.path, target.field_id) if nearest.use_index else []
    for index in indices:
        if nearest.metric in (None, index.metric):
            return index
    if indices and only_indexed:
        metrics = ", ".join(dict.fromkeys(index.metric.value for index in indices))
        asked = "" if nearest.metric is None else nearest.metric.value
        raise InvalidRequestError(
            f"index {indices[0].name!r} of column {target.path!r} has the metric {metrics}, "
            f"not {asked}",
            action="Search with its metric, or without fast_search.",
        )
    return None


def probes_of(nearest: Nearest, partitions: int) -> Probes:
    """Return how many of the partitions of a segment are searched."""
    most = max(1, min(partitions, nearest.maximum_nprobes or partitions))
    first = max(1, nearest.minimum_nprobes or 1)
    if nearest.effort is not None:
        first = ceil(first * (max(first, partitions) / first) ** nearest.effort)
    elif nearest.minimum_nprobes is None:
        first = max(_FIRST_PROBES, ceil(sqrt(partitions)))
    return Probes(first=min(first, most), most=most)


def vector_indices(snapshot: Snapshot, path: str, field_id: FieldId) -> list[SearchedIndex]:
    """Return the vector indices of a column that cover fragments of the version."""
    if not snapshot.indices:
        return []
    field = snapshot.manifest.schema.by_id()[field_id]
    column = Column(path=split_path(path), dtype=indexed_type(field))
    by_name: dict[str, list[VectorSource]] = {}
    for source in IndexSources(snapshot).of(column):
        if isinstance(source.segment, VectorSegment):
            opened = VectorSource(segment=source.segment, coverage=source.coverage)
            by_name.setdefault(source.index, []).append(opened)
    return [_index(name, tuple(sources)) for name, sources in by_name.items()]


def _index(name: str, sources: tuple[VectorSource, ...]) -> SearchedIndex:
    with naming_index(name, WITHOUT_INDEX):
        model = sources[0].segment.model
    return SearchedIndex(name=name, type=model.type, metric=model.metric, sources=sources)


class RowGate:
    """Tests the rows of partitions; what is found out about a partition is kept."""

    def __init__(self, source: VectorSource, allowed: RowIds) -> None:
        self._segment = source.segment
        self._coverage = source.coverage
        self._test: Callable[[U64Array], BoolArray] = allowed.tester()
        self._masks: dict[int, BoolArray | None] = {}

    def __call__(self, number: int, ids: U64Array) -> BoolArray | None:
        """Return which rows of a partition are wanted; None for all."""
        if number not in self._masks:
            mask = self._test(self._to_current(ids))
            self._masks[number] = None if mask.all() else mask
        return self._masks[number]

    def addresses(self, snapshot: Snapshot, ids: U64Array) -> U64Array:
        """Return the addresses of rows that are wanted."""
        if self._coverage.stored is IdKind.STABLE_ID:
            return addresses_of(snapshot, ids)
        return self._to_current(ids)

    def _to_current(self, ids: U64Array) -> U64Array:
        moves = self._coverage.moves
        return moves.row_map(ids) if moves else ids


_kept: PerSnapshot[dict[int, RowGate]] = PerSnapshot(dict)


def live_gate(snapshot: Snapshot, source: VectorSource) -> RowGate:
    """Return the gate for all live rows that a segment covers, kept with the snapshot."""
    gates = _kept(snapshot)
    number = id(source.segment)
    gate = gates.get(number)
    if gate is None:
        coverage = source.coverage
        allowed = live_ids(snapshot, coverage.fragments, coverage.stored)
        gate = gates[number] = RowGate(source, allowed)
    return gate


def filtered_gate(snapshot: Snapshot, source: VectorSource, rows: dict[int, BitMap]) -> RowGate:
    """Return the gate for some rows, given by their offsets in fragments."""
    coverage = source.coverage
    covered = {number: part for number, part in rows.items() if number in coverage.fragments}
    return RowGate(source, ids_of_rows(snapshot, covered, coverage.stored))


class IndexedSearch:
    """A search of the rows that an index covers."""

    def __init__(
        self, snapshot: Snapshot, target: VectorTarget, nearest: Nearest, index: SearchedIndex
    ) -> None:
        self._snapshot = snapshot
        self._target = target
        self._nearest = nearest
        self._index = index

    def run(self, rows: dict[int, BitMap] | None, result: NearestRows) -> None:
        """Add the nearest rows; only those of `rows`, by fragment, if given."""
        for source in self._index.sources:
            gate = (
                live_gate(self._snapshot, source)
                if rows is None
                else filtered_gate(self._snapshot, source, rows)
            )
            with naming_index(self._index.name, WITHOUT_INDEX):
                self._search(source, gate, result)

    def _search(self, source: VectorSource, gate: RowGate, result: NearestRows) -> None:
        nearest, segment = self._nearest, source.segment
        probes = probes_of(nearest, len(segment.model.partitions))
        wanted = candidate_count(nearest)
        if self._target.type.is_multi:
            ids = segment.candidates(nearest.queries, probes, gate, wanted)
            self._refine([gate.addresses(self._snapshot, ids)], result)
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
            self._refine(addresses, result)
            return
        for place, rows in enumerate(results):
            result.add(place, addresses[place], rows.distances)

    def _refine(self, candidates: Sequence[U64Array], result: NearestRows) -> None:
        metric = self._index.metric
        add_refined(self._snapshot, self._target, metric, self._nearest, candidates, result)


def candidate_count(nearest: Nearest) -> int:
    """Return how many rows of each segment are ranked: more than `k` if they are refined."""
    return nearest.k * (nearest.refine_factor or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSearch:
    """A search for the nearest rows of one version."""

    snapshot: Snapshot
    request: SearchRequest
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
            steps.append(self._describe(self.index) + ("" if steps else count))
            steps += self._prefilter_steps(self.index, verbose=verbose)
        if left:
            scan = self._rows_to_scan(left)
            steps += explain(scan, verbose=verbose, read="LanceScan").splitlines()
        return steps

    def _describe(self, index: SearchedIndex) -> str:
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

    def search(self) -> SearchedRows:
        """Search, and return the rows of the result, nearest first."""
        return self._slice(self._find())

    def _find(self) -> SearchedRows:
        queries = self.nearest.queries if self.is_batch else self.nearest.queries[:1]
        nearest = NearestRows(len(queries), self.nearest.k, self.nearest.within)
        left = self._uncovered()
        if self.index is not None:
            left += self._search_index(self.index, nearest)
        if left:
            args = self.target.type, self.metric, self.nearest.queries
            search_rows(self._rows_to_scan(left), *args, nearest)
        ranked = [nearest.result(place) for place in range(len(queries))]
        rows = self._to_rows(ranked)
        if self.request.filter is not None and not self.request.prefilter and len(rows):
            return rows.matching(self.request.filter)
        return rows

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
        ids = self.request.fragment_ids
        if ids is not None:
            return ids
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

    def _to_rows(self, ranked: Sequence[RankedRows]) -> SearchedRows:
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

    def _slice(self, rows: SearchedRows) -> SearchedRows:
        start, limit = self.request.offset or 0, self.request.limit
        if not start and limit is None:
            return rows
        stop = len(rows) if limit is None else min(len(rows), start + limit)
        return rows.only(np.arange(start, max(start, stop)))


def plan_vector_search(
    snapshot: Snapshot, request: SearchRequest, mask: AllowedRows | None = None
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
