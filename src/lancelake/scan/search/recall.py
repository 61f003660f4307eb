"""How much of the true result an index finds, and which rows it holds nearly twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.clock import Clock, Ids
from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import MetaColumn
from lancelake.errors import (
    ColumnTypeError,
    IndexNotFoundError,
    InvalidRequestError,
    UnsupportedError,
)
from lancelake.format.arrow_schema import public_field
from lancelake.format.ids import FieldId
from lancelake.format.index_meta import IndexMetadata, describe
from lancelake.format.rowids import U64Array
from lancelake.index.kind import IdKind, indexed_type
from lancelake.index.vector.vectors import Matrix, Metric, VectorType, metric_named, near_pairs
from lancelake.scan.index_search.sources import naming_index
from lancelake.scan.live_rows import count_rows
from lancelake.scan.request import DEFAULT_K, QUERY_INDEX, Nearest, ScanRequest, SearchRequest
from lancelake.scan.row_lookup import MISSING, addresses_of, take
from lancelake.scan.search.prepared import prepare
from lancelake.scan.search.ranked import rows_at
from lancelake.scan.search.vector_search import (
    SearchedIndex,
    VectorSource,
    live_gate,
    vector_indices,
)

PAIRS = pa.schema(
    [
        pa.field("row_id_a", pa.uint64(), nullable=False),
        pa.field("row_id_b", pa.uint64(), nullable=False),
        pa.field("distance", pa.float32(), nullable=False),
    ]
)
CLUSTERS = pa.schema(
    [
        pa.field("representative", pa.uint64(), nullable=False),
        pa.field("duplicates", pa.list_(pa.uint64()), nullable=False),
    ]
)


def duplicate_pairs(
    snapshot: Snapshot,
    path: str,
    limit: float,
    *,
    segment: str | None = None,
    partition: int | None = None,
) -> pa.RecordBatchReader:
    """Stream the pairs of live rows of one partition whose vectors are as near as `limit`.

    Vectors are those that the codes of the index stand for. All partitions of all segments are
    compared, each for itself; or one partition of the segment with a uuid.
    """
    if isnan(limit):
        raise InvalidRequestError(f"the distance of duplicates must be a number, not {limit}")
    index = _only_index(snapshot, path)
    sources = index.sources
    if segment is not None:
        sources = _chosen(index, [segment])
        count = len(sources[0].segment.model.partitions)
        if partition is None or not 0 <= partition < count:
            problem = f"segment {segment} has partitions 0 to {count - 1}, not {partition}"
            raise InvalidRequestError(problem)
    else:
        left = [f.id for f in snapshot.manifest.fragments if f.id not in index.covered]
        if left:
            problem = f"index {index.name!r} does not cover fragment {left[0]}"
            raise InvalidRequestError(problem, action="Call optimize_indices first.")
    parts = (
        (source, number)
        for source in sources
        for number in range(len(source.segment.model.partitions))
        if partition in (None, number)
    )
    batches = (batch for each in parts for batch in _pairs(snapshot, index, *each, limit))
    return pa.RecordBatchReader.from_batches(PAIRS, batches)


def partition_sizes(
    snapshot: Snapshot, name: str, segments: Sequence[str] | None = None
) -> list[int]:
    """Return the number of rows of each partition of an index, in all or in some segments."""
    index = _named_index(snapshot, name)
    sources = _alike(index, _chosen(index, segments))
    counts = [np.array(source.segment.model.rows.counts) for source in sources]
    return [int(count) for count in np.sum(counts, axis=0)]


def partition_clusters(
    snapshot: Snapshot,
    name: str,
    partition: int,
    limit: int,
    segments: Sequence[str] | None = None,
) -> pa.RecordBatchReader:
    """Return clusters of the live rows of a partition, by the hamming distances of their bytes."""
    index = _named_index(snapshot, name)
    if index.metric is not Metric.HAMMING:
        problem = f"index {name!r} has the metric {index.metric.value}, not hamming"
        raise InvalidRequestError(problem)
    sources = _alike(index, _chosen(index, segments))
    count = len(sources[0].segment.model.partitions)
    if not 0 <= partition < count:
        raise InvalidRequestError(f"index {name!r} has {count} partitions, not {partition}")
    with naming_index(name):
        parts = [_rows(snapshot, source, partition) for source in sources]
    return clusters(
        np.concatenate([each.ids for each in parts]),
        np.concatenate([each.vectors for each in parts]),
        limit,
    )


def clusters(ids: U64Array, hashes: Matrix, limit: int) -> pa.RecordBatchReader:
    """Return rows that are connected by hamming distances up to a limit; single rows are left out.

    The smallest id of each cluster represents it.
    """
    if limit < 0:
        raise InvalidRequestError(f"hamming_threshold must not be negative, got {limit}")
    order = np.argsort(ids, kind="stable")
    ids, hashes = ids[order], hashes[order]
    roots = np.arange(len(ids))
    for firsts, seconds, _ in near_pairs(Metric.HAMMING, hashes, limit, hashes.shape[1]):
        _join(roots, firsts, seconds)
    roots = np.array([_root(roots, place) for place in range(len(ids))], dtype=np.int64)
    representatives = np.flatnonzero(np.bincount(roots, minlength=len(ids)) > 1)
    rows = [
        {"representative": ids[root], "duplicates": ids[np.flatnonzero(roots == root)[1:]]}
        for root in representatives.tolist()
    ]
    return pa.Table.from_pylist(rows, schema=CLUSTERS).to_reader()


@dataclass(frozen=True, slots=True)
class _Rows:
    """Live rows of a partition and their vectors."""

    ids: U64Array
    vectors: Matrix


def _pairs(
    snapshot: Snapshot, index: SearchedIndex, source: VectorSource, number: int, limit: float
) -> Iterator[pa.RecordBatch]:
    with naming_index(index.name):
        rows = _rows(snapshot, source, number)
        loaded = source.segment.files.partition(number).loaded
    width = loaded.nbytes // max(1, len(loaded))
    for firsts, seconds, distances in near_pairs(index.metric, rows.vectors, limit, width):
        columns = [pa.array(rows.ids[firsts]), pa.array(rows.ids[seconds]), pa.array(distances)]
        yield pa.RecordBatch.from_arrays(columns, schema=PAIRS)


def _rows(snapshot: Snapshot, source: VectorSource, number: int) -> _Rows:
    segment, gate = source.segment, live_gate(snapshot, source)
    ids = segment.files.partition(number).ids
    mask = gate(number, ids)
    vectors = segment.represented(number, mask)
    ids = ids if mask is None else ids[mask]
    if source.coverage.stored is IdKind.ADDRESS:
        ids = gate.addresses(snapshot, ids)
    return _Rows(ids, vectors)


def _only_index(snapshot: Snapshot, path: str) -> SearchedIndex:
    column = VectorColumn.of(snapshot, path)
    if column.type.is_multi:
        raise UnsupportedError(
            f"column {path!r} has multivectors, whose duplicates cannot be searched"
        )
    indices = vector_indices(snapshot, path, column.field_id)
    if len(indices) != 1:
        names = ", ".join(repr(index.name) for index in indices) or "none"
        problem = f"column {path!r} must have one vector index, but has {names}"
        raise InvalidRequestError(problem, column=path)
    return indices[0]


def _named_index(snapshot: Snapshot, name: str) -> SearchedIndex:
    fields = {entry.fields[0] for entry in snapshot.indices if entry.name == name and entry.fields}
    for field in fields:
        path = snapshot.manifest.schema.path_of(field)
        indices = [] if path is None else vector_indices(snapshot, path, field)
        for index in indices:
            if index.name == name:
                return index
    raise IndexNotFoundError(f"there is no vector index {name!r}", index=name)


def _chosen(index: SearchedIndex, segments: Iterable[str] | None) -> tuple[VectorSource, ...]:
    if segments is None:
        return index.sources
    by_uuid = {source.segment.uuid: source for source in index.sources}
    missing = next((uuid for uuid in segments if uuid not in by_uuid), None)
    if missing is not None:
        raise InvalidRequestError(f"index {index.name!r} has no segment {missing}")
    sources = tuple(by_uuid[uuid] for uuid in dict.fromkeys(segments))
    if not sources:
        raise InvalidRequestError("index_segments must not be empty")
    return sources


def _alike(index: SearchedIndex, sources: tuple[VectorSource, ...]) -> tuple[VectorSource, ...]:
    first = sources[0].segment.model.partitions
    if not all(first.is_same(source.segment.model.partitions) for source in sources[1:]):
        problem = f"segments of index {index.name!r} have different partitions"
        raise InvalidRequestError(problem)
    return sources


def _join(
    roots: npt.NDArray[np.int64], firsts: npt.NDArray[np.int64], seconds: npt.NDArray[np.int64]
) -> None:
    for first, second in zip(firsts.tolist(), seconds.tolist(), strict=True):
        one, other = _root(roots, first), _root(roots, second)
        roots[max(one, other)] = min(one, other)


def _root(roots: npt.NDArray[np.int64], place: int) -> int:
    while roots[place] != place:
        roots[place] = roots[roots[place]]
        place = int(roots[place])
    return place


_VECTOR_DETAILS = "vectorindexdetails"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorColumn:
    """A column of vectors of a version."""

    snapshot: Snapshot
    path: str
    field_id: FieldId
    type: VectorType

    @staticmethod
    def of(snapshot: Snapshot, path: str) -> VectorColumn:
        """Find a column; refuse one without vectors."""
        field = snapshot.manifest.schema.resolve(path)[-1]
        vector_type = VectorType.of(indexed_type(field))
        if vector_type is None:
            shown = public_field(field).type
            raise ColumnTypeError(
                f"column {path!r} has no vectors: its type is {shown}", column=path
            )
        return VectorColumn(
            snapshot=snapshot, path=path, field_id=FieldId(field.id), type=vector_type
        )

    @property
    def is_indexed(self) -> bool:
        """Whether there is a vector index of the column."""
        return bool(self._entries())

    @property
    def index_metric(self) -> Metric | None:
        """Metric of the index; None if there is none, or if only its files name it."""
        for entry in self._entries():
            name = describe(entry.details)[1].get("metric_type")
            if name is not None:
                return metric_named(name)
        return None

    def _entries(self) -> list[IndexMetadata]:
        return [
            entry
            for entry in self.snapshot.indices
            if entry.details is not None
            and entry.details.kind == _VECTOR_DETAILS
            and tuple(entry.fields) == (self.field_id,)
        ]

    def vectors_of(self, addresses: U64Array) -> npt.NDArray[np.float32]:
        """Return the vectors of rows as queries; rows without one are left out."""
        values = rows_at(self.snapshot, addresses, ScanRequest(columns=(self.path,))).column(0)
        return self.type.vectors(values.combine_chunks()).matrix.astype(np.float32)


def nearest_to_row(snapshot: Snapshot, path: str, row_id: int) -> Nearest:
    """Return a search for the rows near the vector of a row."""
    column = VectorColumn.of(snapshot, path)
    addresses = addresses_of(snapshot, np.array([row_id], dtype=np.uint64))
    if addresses[0] == MISSING:
        raise InvalidRequestError(f"there is no row with the id {row_id}")
    queries = column.vectors_of(addresses)
    if not len(queries):
        raise InvalidRequestError(f"row {row_id} has no vector in column {path!r}")
    return Nearest(column=path, queries=queries, has_several=column.type.is_multi)


def sampled_vectors(column: VectorColumn, numbers: U64Array) -> npt.NDArray[np.float32]:
    """Return the vectors of rows by their number among the live rows, as queries."""
    request = ScanRequest(columns=(), with_row_address=True)
    rows = take(column.snapshot, numbers, request)
    return column.vectors_of(rows.column(0).to_numpy())


DEFAULT_NPROBES = (1, 2, 5, 10, 20, 50)
DEFAULT_SAMPLE = 100
_ROW_ID = MetaColumn.ROW_ID.value


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """Queries and settings of a measurement."""

    column: str
    k: int = DEFAULT_K
    sample: int = DEFAULT_SAMPLE
    """Number of rows whose vectors are the queries."""
    nprobes: tuple[int, ...] = DEFAULT_NPROBES
    metric: Metric | None = None
    refine_factor: int | None = None
    ef: int | None = None

    def __post_init__(self) -> None:
        if self.sample <= 0:
            raise InvalidRequestError(f"the sample must have at least one row, got {self.sample}")
        if not self.nprobes or min(self.nprobes) <= 0:
            raise InvalidRequestError("nprobes must be one or more numbers greater than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPoint:
    """Recall and latency for a number of probed partitions; None for exact search."""

    nprobes: int | None
    recall: float
    median_ms: float
    slow_ms: float
    """Latency that 95 % of the queries do not exceed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """A measurement: one point for each number of probes, then one of exact search."""

    queries: int
    points: tuple[RecallPoint, ...]


def measure_recall(
    snapshot: Snapshot,
    request: RecallRequest,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> Recall:
    """Measure recall@k and latency of single queries by number of probes, and of exact search.

    The recall is the share of the `k` rows of an exact search that the index returns. The queries
    are vectors of a random sample of rows. Each query runs twice, and the second run is measured.
    """
    column = VectorColumn.of(snapshot, request.column)
    if column.type.is_multi:
        raise UnsupportedError("recall is not measured for columns of multivectors")
    if not column.is_indexed:
        problem = f"column {request.column!r} has no vector index"
        raise InvalidRequestError(problem, action="Create one, or search it exactly.")
    session = snapshot.location.session
    clock = session.clock if clock is None else clock
    rows = count_rows(snapshot)
    numbers = sorted((ids or session.ids).sample(rows, min(rows, request.sample)))
    queries = sampled_vectors(column, np.array(numbers, dtype=np.uint64))
    if not len(queries):
        raise InvalidRequestError(f"column {request.column!r} has no vectors in the sampled rows")
    nearest = Nearest(
        column=request.column,
        queries=queries,
        k=request.k,
        metric=request.metric or column.index_metric,
        refine_factor=request.refine_factor,
        ef=request.ef,
    )
    exact = replace(nearest, use_index=False, refine_factor=None)
    expected = _row_ids(snapshot, exact)
    points = [
        _point(snapshot, _probing(nearest, count), expected, clock, count)
        for count in request.nprobes
    ]
    points.append(_point(snapshot, exact, expected, clock, None))
    return Recall(queries=len(queries), points=tuple(points))


def _probing(nearest: Nearest, count: int) -> Nearest:
    return replace(nearest, minimum_nprobes=count, maximum_nprobes=count)


def _point(
    snapshot: Snapshot,
    nearest: Nearest,
    expected: list[U64Array],
    clock: Clock,
    nprobes: int | None,
) -> RecallPoint:
    seconds, hits = [], 0
    for place, wanted in enumerate(expected):
        single = replace(nearest, queries=nearest.queries[place : place + 1])
        _search(snapshot, single)
        start = clock.monotonic_s()
        rows = _search(snapshot, single)
        seconds.append(clock.monotonic_s() - start)
        hits += int(np.isin(wanted, rows).sum())
    total = sum(map(len, expected))
    return RecallPoint(
        nprobes=nprobes,
        recall=hits / total if total else 1.0,
        median_ms=float(np.percentile(seconds, 50)) * 1e3,
        slow_ms=float(np.percentile(seconds, 95)) * 1e3,
    )


def _search(snapshot: Snapshot, nearest: Nearest) -> U64Array:
    request = SearchRequest(columns=(), nearest=nearest, with_row_id=True)
    with prepare(snapshot, request).run() as reader:
        ids: U64Array = reader.read_all().column(_ROW_ID).to_numpy()
    return ids


def _row_ids(snapshot: Snapshot, nearest: Nearest) -> list[U64Array]:
    """Return the rows of each query."""
    several = replace(nearest, has_several=True)
    request = SearchRequest(columns=(), nearest=several, with_row_id=True)
    with prepare(snapshot, request).run() as reader:
        table = reader.read_all()
    places = table.column(QUERY_INDEX).to_numpy()
    rows = table.column(_ROW_ID).to_numpy()
    return [rows[places == place] for place in range(len(nearest.queries))]
