"""Writing of vector index segments, partition by partition."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.format.index_meta import IndexDetails, IndexFile
from lancelake.index.kind import ROW_ID, BuiltSegment
from lancelake.index.row_ids import U64Array
from lancelake.index.vector import graph
from lancelake.index.vector.codes import CodeMatrix, Codes
from lancelake.index.vector.faiss_library import use_one_thread
from lancelake.index.vector.files import (
    CENTERS_FILE,
    CODES_KEY,
    FLAT_KEY,
    GRAPH_KEY,
    INDEX_KEY,
    IVF_KEY,
    METRIC_KEY,
    ROWS_FILE,
)
from lancelake.index.vector.graph import Graph, build_graph
from lancelake.index.vector.metric import Metric
from lancelake.index.vector.partitions import (
    PartitionRows,
    Partitions,
    encode_centers,
    encode_rows,
)
from lancelake.index.vector.product_codes import ProductCodes
from lancelake.index.vector.rotated_codes import RotatedCodes
from lancelake.index.vector.settings import BuildSettings
from lancelake.index.vector.training import TrainedModel
from lancelake.index.vector.vectors import Element
from lancelake.proto import index_pb2

TYPE_URL = "/lance.index.pb.VectorIndexDetails"
_INDEX_VERSION = 1
# Releases that do not read RQ codes accept version 1 at most.
_ROTATED_VERSION = 2
_METRICS = {
    Metric.L2: index_pb2.L2,
    Metric.COSINE: index_pb2.Cosine,
    Metric.DOT: index_pb2.Dot,
    Metric.HAMMING: index_pb2.Hamming,
}
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
    graphs = folder.create(CENTERS_FILE, graph.SCHEMA) if settings.has_graph else None
    counts: list[int] = []
    described: list[str] = []
    sizes: list[int] = []
    for part, found in _with_graphs(model, settings, partitions):
        counts.append(0 if part is None else len(part[0]))
        if part is not None:
            rows.write(_batch(codes, *part, schema))
        if graphs is not None and found is not None:
            if found.rows.num_rows:
                graphs.write(found.rows)
            sizes.append(found.rows.num_rows)
            described.append(found.settings)
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
        texts = json.dumps(described)
        head = {INDEX_KEY: _index(model), IVF_KEY: str(number), GRAPH_KEY: texts}
        centers = graphs.finish(head)
    details = IndexDetails(type_url=TYPE_URL, value=_details(model, settings))
    version = _ROTATED_VERSION if isinstance(codes, RotatedCodes) else _INDEX_VERSION
    return BuiltSegment(details=details, index_version=version, files=(centers, written))


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
        return build_graph(_decoded(model, part), settings)

    count = os.cpu_count() or 1
    waiting: deque[tuple[PartitionCodes | None, Future[Graph]]] = deque()
    with ThreadPoolExecutor(count, initializer=use_one_thread) as pool:
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
    number = file.add_buffer(encode_centers(model.partitions, _element(model), none))
    return file.finish(
        {INDEX_KEY: _index(model), IVF_KEY: str(number), FLAT_KEY: json.dumps([""] * count)}
    )


def _element(model: TrainedModel) -> Element:
    return model.dtype.element


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


def _decoded(model: TrainedModel, part: PartitionCodes | None) -> np.ndarray:
    """Return the vectors between which a graph has edges."""
    partitions: Partitions = model.partitions
    if part is None:
        return np.zeros((0, partitions.dimension), dtype=np.float32)
    return model.codes.decode(part[1])


def _details(model: TrainedModel, settings: BuildSettings) -> bytes:
    message = index_pb2.VectorIndexDetails(metric_type=_METRICS[model.partitions.metric])
    if settings.has_graph:
        message.hnsw_index_config.max_connections = settings.neighbours
        message.hnsw_index_config.construction_ef = settings.construction_ef
        message.hnsw_index_config.max_level = settings.max_level
    if isinstance(model.codes, ProductCodes):
        message.pq.num_bits = model.codes.bits
        message.pq.num_sub_vectors = model.codes.parts
    elif isinstance(model.codes, RotatedCodes):
        message.rq.num_bits = model.codes.bits
    elif model.codes.name == "SQ":
        message.sq.num_bits = 8
    else:
        message.flat.SetInParent()
    trained = ["ivf", *(code for code in ("pq", "sq") if code == model.codes.name.lower())]
    for part in trained:
        message.runtime_hints[f"lance.{part}.sample_rate"] = str(settings.sample_rate)
        if part != "sq":
            message.runtime_hints[f"lance.{part}.max_iters"] = str(settings.max_iters)
    return message.SerializeToString(deterministic=True)
