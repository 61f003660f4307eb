"""Rows with nearly the same vectors: pairs in partitions of a vector index, and clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import IndexNotFoundError, InvalidRequestError, UnsupportedError
from lancelake.index.kind import IdKind
from lancelake.index.row_sets import U64Array
from lancelake.index.vector.vectors import Matrix, Metric, near_pairs
from lancelake.scan.index_search.sources import naming_index
from lancelake.scan.search.recall import VectorColumn
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
