"""Recall of a vector index: its answers compared with those of exact search."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lancelake.clock import Clock, Ids, SystemClock, SystemIds
from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.row_meta import MetaColumn
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.rowids.segment import U64Array
from lancelake.index.vector.metric import Metric
from lancelake.scan.count import count_rows
from lancelake.scan.nearest import DEFAULT_K, QUERY_INDEX, Nearest
from lancelake.scan.prepared import prepare
from lancelake.scan.request import ScanRequest
from lancelake.scan.search.stored_vectors import VectorColumn, sampled_vectors

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


@names_table
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
    clock = SystemClock() if clock is None else clock
    rows = count_rows(snapshot)
    chosen = sorted((ids or SystemIds()).sample(rows, min(rows, request.sample)))
    queries = sampled_vectors(column, np.array(chosen, dtype=np.uint64))
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
    seconds, found = [], 0
    for place, wanted in enumerate(expected):
        single = replace(nearest, queries=nearest.queries[place : place + 1])
        _search(snapshot, single)
        start = clock.monotonic_s()
        rows = _search(snapshot, single)
        seconds.append(clock.monotonic_s() - start)
        found += int(np.isin(wanted, rows).sum())
    total = sum(map(len, expected))
    return RecallPoint(
        nprobes=nprobes,
        recall=found / total if total else 1.0,
        median_ms=float(np.percentile(seconds, 50)) * 1e3,
        slow_ms=float(np.percentile(seconds, 95)) * 1e3,
    )


def _search(snapshot: Snapshot, nearest: Nearest) -> U64Array:
    request = ScanRequest(columns=(), nearest=nearest, with_row_id=True)
    with prepare(snapshot, request).run() as reader:
        found: U64Array = reader.read_all().column(_ROW_ID).to_numpy()
    return found


def _row_ids(snapshot: Snapshot, nearest: Nearest) -> list[U64Array]:
    """Return the rows of each query."""
    several = replace(nearest, has_several=True)
    request = ScanRequest(columns=(), nearest=several, with_row_id=True)
    with prepare(snapshot, request).run() as reader:
        table = reader.read_all()
    places = table.column(QUERY_INDEX).to_numpy()
    rows = table.column(_ROW_ID).to_numpy()
    return [rows[places == place] for place in range(len(nearest.queries))]
