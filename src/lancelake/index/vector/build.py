"""Building vector indices: models that are trained on rows, and the files of a segment."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.port import Stages
from lancelake.errors import TooFewRowsError
from lancelake.format.index_meta import IndexFile
from lancelake.index.kind import ROW_ID, VALUE, BuiltSegment
from lancelake.index.row_sets import U64Array
from lancelake.index.vector.clustering import (
    nearest_centers,
    partition_centers,
    train_codebook,
)
from lancelake.index.vector.codes import CodeMatrix, Codes, FlatCodes, ProductCodes, ScalarCodes
from lancelake.index.vector.rotated_codes import new_settings, rotated_codes
from lancelake.index.vector.segment import (
    CENTERS_FILE,
    CODES_KEY,
    FLAT_KEY,
    GRAPH_KEY,
    INDEX_KEY,
    IVF_KEY,
    METRIC_KEY,
    ROWS_FILE,
)
from lancelake.index.vector.settings import BuildSettings
from lancelake.index.vector.settings import segment_with as segment_of
from lancelake.index.vector.vectors import (
    Matrix,
    Metric,
    PartitionRows,
    Partitions,
    Vectors,
    VectorType,
    encode_centers,
    encode_rows,
    faiss,
    normalized,
    one_thread,
)
from lancelake.threads import Future, Pool, usable_cores

# Vectors per code of a sub-vector that are enough to train it.
_CODE_SAMPLE = 256
_LEAST_SAMPLE = 1 << 13
_HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainedModel:
    """Partitions and codes of an index."""

    type: str
    dtype: VectorType
    partitions: Partitions
    codes: Codes
    accelerator: str | None = None

    def indexed(self, values: pa.Array) -> Vectors:
        """Return the vectors of rows that are indexed: those of which all values are finite."""
        return indexed_vectors(values, self.dtype, self.partitions.metric)

    def assigned(self, vectors: Matrix) -> npt.NDArray[np.int64]:
        """Return the partition of each vector."""
        if self.partitions.metric is Metric.HAMMING:
            return self.partitions.by_distance(vectors)[:, 0]
        return nearest_centers(vectors, self.partitions.centers, self.accelerator)

    def encoded(self, vectors: Matrix, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Encode vectors of these partitions."""
        return self.codes.encode(vectors, self.partitions.centers[numbers])


def indexed_vectors(values: pa.Array, dtype: VectorType, metric: Metric) -> Vectors:
    """Return the vectors that an index of a metric stores."""
    vectors = dtype.vectors(values)
    matrix, rows = vectors.matrix, vectors.rows
    if matrix.dtype == np.uint8:
        return vectors
    matrix = np.ascontiguousarray(matrix, dtype=np.float32)
    if metric is Metric.COSINE:
        matrix = normalized(matrix)
    is_finite = np.isfinite(matrix).all(axis=1)
    if not is_finite.all():
        matrix, rows = matrix[is_finite], rows[is_finite]
    return Vectors(matrix=matrix, rows=rows)


def train(
    batches: Iterable[pa.RecordBatch],
    total: int,
    settings: BuildSettings,
    dtype: VectorType,
    stages: Stages | None = None,
) -> TrainedModel:
    """Train partitions and codes from some of about `total` rows, if they are not given."""
    stages = stages or Stages()
    wanted = max(_LEAST_SAMPLE, settings.sample_rate * settings.partitions_for(total))
    if settings.code == "PQ":
        wanted = max(wanted, _CODE_SAMPLE << settings.bits)
    with stages.stage("train_ivf", unit="models"):
        read = () if settings.is_trained else batches
        sample = _sample(read, total, wanted, dtype, settings.metric)
        if not len(sample):
            sample = np.zeros((1, dtype.dimension), dtype=sample.dtype)
        count = settings.partitions_for(total)
        partitions = _partitions(sample, min(count, len(sample)), settings)
    with stages.stage("train_quantizer", unit="models"):
        codes = _codes(sample, partitions, settings, dtype)
    return TrainedModel(
        type=settings.type,
        dtype=dtype,
        partitions=partitions,
        codes=codes,
        accelerator=settings.accelerator,
    )


def _sample(
    batches: Iterable[pa.RecordBatch], total: int, wanted: int, dtype: VectorType, metric: Metric
) -> Matrix:
    """Return vectors of evenly spaced rows."""
    step = max(1, total // wanted)
    parts: list[Matrix] = []
    seen = 0
    for batch in batches:
        places = np.arange(-seen % step, batch.num_rows, step)
        seen += batch.num_rows
        values = batch.column(VALUE)
        if step > 1:
            values = values.take(pa.array(places))
        parts.append(indexed_vectors(values, dtype, metric).matrix)
    whole = np.concatenate(parts) if parts else np.zeros((0, dtype.dimension), dtype=np.float32)
    return whole[:: -(-len(whole) // (2 * wanted))] if len(whole) > 2 * wanted else whole


def _partitions(sample: Matrix, count: int, settings: BuildSettings) -> Partitions:
    metric = settings.metric
    if settings.centers is not None:
        kind = np.uint8 if metric is Metric.HAMMING else np.float32
        return Partitions(centers=np.ascontiguousarray(settings.centers, kind), metric=metric)
    if metric is Metric.HAMMING:
        bits = np.unpackbits(sample, axis=1).astype(np.float32)
        means, loss = partition_centers(bits, count, settings.max_iters, settings.accelerator)
        return Partitions(centers=np.packbits(means > _HALF, axis=1), metric=metric, loss=loss)
    centers, loss = partition_centers(sample, count, settings.max_iters, settings.accelerator)
    return Partitions(centers=centers, metric=metric, loss=loss)


def _codes(
    sample: Matrix, partitions: Partitions, settings: BuildSettings, dtype: VectorType
) -> Codes:
    metric = settings.metric
    if settings.code == "FLAT":
        return FlatCodes(dimension=dtype.dimension, element=dtype.element, metric=metric)
    if settings.code == "SQ":
        low, high = settings.bounds or (float(sample.min()), float(sample.max()))
        return ScalarCodes(dimension=dtype.dimension, metric=metric, lower=low, upper=high)
    if settings.code == "RQ":
        given = settings.rotation_model or new_settings(dtype.dimension, settings.bits)
        layout = {**given, "packed": not settings.skip_transpose}
        return rotated_codes(metric, dtype.dimension, layout)
    book = settings.codebook
    if book is None:
        book = _codebook(sample, partitions, settings)
    shape = settings.parts, 1 << settings.bits, -1
    return ProductCodes(
        metric=metric,
        element=dtype.element,
        bits=settings.bits,
        codebook=book.reshape(shape),
        is_transposed=not settings.skip_transpose,
    )


def _codebook(
    sample: Matrix, partitions: Partitions, settings: BuildSettings
) -> npt.NDArray[np.float32]:
    least = 1 << settings.bits
    if len(sample) < least:
        raise TooFewRowsError(
            f"Not enough rows to train PQ. Requires {least} rows but only {len(sample)} available"
        )
    wanted = _CODE_SAMPLE << settings.bits
    sampled = sample[:: max(1, len(sample) // wanted)][:wanted]
    if settings.metric is not Metric.DOT:
        numbers = nearest_centers(sampled, partitions.centers, settings.accelerator)
        sampled = sampled - partitions.centers[numbers]
    device = settings.accelerator
    return train_codebook(sampled, settings.parts, settings.bits, settings.max_iters, device)


SCHEMA = pa.schema(
    [
        pa.field("__vector_id", pa.uint32()),
        pa.field("__neighbors", pa.list_(pa.uint32())),
        pa.field("_distance", pa.list_(pa.float32())),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """Rows of a graph, level by level, and its settings as JSON."""

    rows: pa.RecordBatch
    settings: str


def build_graph(vectors: Matrix, settings: BuildSettings) -> Graph:
    """Build the graph of the vectors of a partition."""
    library = faiss()
    index = library.IndexHNSWFlat(vectors.shape[1], settings.neighbours)
    index.hnsw.efConstruction = settings.construction_ef
    if len(vectors):
        index.add(np.ascontiguousarray(vectors, dtype=np.float32))
    levels = library.vector_to_array(index.hnsw.levels)
    neighbors = library.vector_to_array(index.hnsw.neighbors).astype(np.int64)
    starts = library.vector_to_array(index.hnsw.offsets).astype(np.int64)
    per_level = library.vector_to_array(index.hnsw.cum_nneighbor_per_level).astype(np.int64)
    parts: list[pa.RecordBatch] = []
    ends = [0]
    for level in range(settings.max_level):
        nodes = np.flatnonzero(levels > level)
        if len(nodes):
            low, high = int(per_level[level]), int(per_level[level + 1])
            places = starts[nodes][:, np.newaxis] + np.arange(low, high)
            parts.append(_rows(nodes, neighbors[places], vectors))
        ends.append(ends[-1] + len(nodes))
    segment_with = {
        "entry_point": max(0, int(index.hnsw.entry_point)),
        "params": {
            "max_level": settings.max_level,
            "m": settings.neighbours,
            "ef_construction": settings.construction_ef,
            "prefetch_distance": 2,
        },
        "level_offsets": ends,
    }
    rows = pa.concat_batches(parts) if parts else pa.RecordBatch.from_pylist([], schema=SCHEMA)
    return Graph(rows=rows, settings=json.dumps(segment_with, separators=(",", ":")))


def _rows(
    nodes: npt.NDArray[np.int64], neighbors: npt.NDArray[np.int64], vectors: Matrix
) -> pa.RecordBatch:
    """Return the rows of one level: for each node its neighbours, the nearest first."""
    exists = neighbors >= 0
    difference = vectors[np.where(exists, neighbors, 0)] - vectors[nodes][:, np.newaxis]
    distances = np.einsum("ijk,ijk->ij", difference, difference).astype(np.float32)
    distances[~exists] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")
    counts = exists.sum(axis=1)
    is_listed = np.arange(neighbors.shape[1]) < counts[:, np.newaxis]
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    columns = [
        pa.array(nodes.astype(np.uint32)),
        _lists(ends, np.take_along_axis(neighbors, order, 1)[is_listed].astype(np.uint32)),
        _lists(ends, np.take_along_axis(distances, order, 1)[is_listed]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _lists(ends: npt.NDArray[np.int32], values: npt.NDArray[np.generic]) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values))


_MARKER = pa.schema([pa.field("__flat_marker", pa.uint64(), nullable=False)])

PartitionCodes = tuple[U64Array, CodeMatrix]
"""Ids and codes of the rows of a partition."""


def write_segment(
    model: TrainedModel,
    settings: BuildSettings,
    partitions: Iterable[PartitionCodes | None],
    folder: SegmentFolder,
) -> BuiltSegment:
    """Write the rows of all partitions, in their order."""
    codes = model.codes
    schema = pa.schema([pa.field(ROW_ID, pa.uint64()), *codes.fields()])
    rows = folder.create(ROWS_FILE, schema)
    graphs = folder.create(CENTERS_FILE, SCHEMA) if settings.has_graph else None
    counts: list[int] = []
    segment_with: list[str] = []
    sizes: list[int] = []
    for part, graph in _with_graphs(model, settings, partitions):
        counts.append(0 if part is None else len(part[0]))
        if part is not None:
            rows.write(_batch(codes, *part, schema))
        if graphs is not None and graph is not None:
            if graph.rows.num_rows:
                graphs.write(graph.rows)
            sizes.append(graph.rows.num_rows)
            segment_with.append(graph.settings)
    placed = PartitionRows.of(np.array(counts, dtype=np.int64))
    metric = model.partitions.metric.value
    metadata = {
        METRIC_KEY: metric,
        IVF_KEY: str(rows.add_buffer(encode_rows(placed))),
        CODES_KEY: json.dumps([_compact(codes.metadata())]),
    }
    buffer = codes.buffer()
    if buffer is not None:
        rows.add_buffer(buffer)
    written = rows.finish(metadata)
    if graphs is None:
        centers = _write_centers(model, folder)
    else:
        places = PartitionRows.of(np.array(sizes, dtype=np.int64))
        number = graphs.add_buffer(encode_centers(model.partitions, model.dtype.element, places))
        texts = json.dumps(segment_with)
        head = {INDEX_KEY: _index(model), IVF_KEY: str(number), GRAPH_KEY: texts}
        centers = graphs.finish(head)
    return segment_of(settings, (centers, written))


def _with_graphs(
    model: TrainedModel, settings: BuildSettings, partitions: Iterable[PartitionCodes | None]
) -> Iterator[tuple[PartitionCodes | None, Graph | None]]:
    """Yield partitions with their graphs, of which several are built at once, each by one thread.

    Threads that share a graph wait for each other most of the time.
    """
    if not settings.has_graph:
        yield from ((part, None) for part in partitions)
        return

    def graph_of(part: PartitionCodes | None) -> Graph:
        return build_graph(_decode(model, part), settings)

    count = usable_cores()
    waiting: deque[tuple[PartitionCodes | None, Future[Graph]]] = deque()
    with Pool(count, within=one_thread) as pool:
        for part in partitions:
            waiting.append((part, pool.submit(graph_of, part)))
            if len(waiting) > count:
                first, building = waiting.popleft()
                yield first, building.result()
        for first, building in waiting:
            yield first, building.result()


def _write_centers(model: TrainedModel, folder: SegmentFolder) -> IndexFile:
    count = len(model.partitions)
    file = folder.create(CENTERS_FILE, _MARKER)
    none = PartitionRows(starts=(0,) * count, counts=(0,) * count)
    number = file.add_buffer(encode_centers(model.partitions, model.dtype.element, none))
    return file.finish(
        {INDEX_KEY: _index(model), IVF_KEY: str(number), FLAT_KEY: json.dumps([""] * count)}
    )


def _index(model: TrainedModel) -> str:
    return _compact({"type": model.type, METRIC_KEY: model.partitions.metric.value})


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _batch(codes: Codes, ids: U64Array, rows: CodeMatrix, schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(ids, pa.uint64())]
    for field, values in zip(list(schema)[1:], codes.stored(rows), strict=True):
        column = pa.array(values)
        if pa.types.is_fixed_size_list(field.type):
            column = pa.FixedSizeListArray.from_arrays(column, field.type.list_size)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _decode(model: TrainedModel, part: PartitionCodes | None) -> np.ndarray:
    """Return the vectors between which a graph has edges."""
    partitions: Partitions = model.partitions
    if part is None:
        return np.zeros((0, partitions.dimension), dtype=np.float32)
    return model.codes.decode(part[1])
