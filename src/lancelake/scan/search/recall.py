"""Recall of a vector index, measured with vectors of the table."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lancelake.clock import Clock, Ids
from lancelake.commit.snapshot import Snapshot
from lancelake.data.deletion_files import MetaColumn
from lancelake.errors import ColumnTypeError, InvalidRequestError, UnsupportedError
from lancelake.format.arrow_schema import public_field
from lancelake.format.ids import FieldId
from lancelake.format.index_meta import IndexMetadata, describe
from lancelake.format.rowids import U64Array
from lancelake.index.kind import indexed_type
from lancelake.index.vector.vectors import Metric, VectorType, metric_named
from lancelake.scan.live_rows import count_rows
from lancelake.scan.request import DEFAULT_K, QUERY_INDEX, Nearest, ScanRequest, SearchRequest
from lancelake.scan.row_lookup import MISSING, addresses_of, take
from lancelake.scan.search.prepared import prepare
from lancelake.scan.search.ranked import rows_at

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
