"""Kind of vector indices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.port import Advance
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.index_meta import IndexMetadata
from lancelake.index import kind
from lancelake.index.row_sets import RowIds
from lancelake.index.vector.build import PartitionCodes, TrainedModel, train, write_segment
from lancelake.index.vector.coded_rows import GroupedRows, grouped_rows
from lancelake.index.vector.codes import Codes, ProductCodes, ScalarCodes, spanning_codes
from lancelake.index.vector.segment import CENTERS_FILE, SegmentModel, VectorSegment
from lancelake.index.vector.settings import TYPES, BuildSettings, read_settings, segment_with
from lancelake.index.vector.vectors import Element, Matrix, Metric, VectorType, distances

_K = 10
_QUERIES = 128
# A search probes at least so many partitions if it does not say how many.
_PROBES = 20
LEAST_SAMPLE = 20 * _K
"""Fewer vectors give no estimate."""


def estimated_recall(model: TrainedModel, vectors: Matrix) -> float | None:
    """Return the share of the nearest vectors of a sample that its codes and partitions find.

    Queries are vectors of the sample, as `TrainedModel.indexed` returns them. None if the sample
    is too small, or for hamming distances.
    """
    partitions = model.partitions
    if len(vectors) < LEAST_SAMPLE:
        return None
    if partitions.metric is Metric.HAMMING:
        return None
    queries = vectors[:: max(1, len(vectors) // _QUERIES)][:_QUERIES]
    metric = Metric.DOT if partitions.metric is Metric.DOT else Metric.L2
    numbers = model.assigned(vectors)
    coded = _coded_distances(model, queries, vectors, numbers)
    near = partitions.by_distance(queries)[:, :_PROBES]
    is_probed = np.zeros((len(queries), len(partitions)), dtype=np.bool_)
    np.put_along_axis(is_probed, near, True, axis=1)
    coded = np.where(is_probed[:, numbers], coded, np.float32(np.inf))
    exact = _first(distances(metric, queries, vectors))
    hits = [len(np.intersect1d(a, b)) for a, b in zip(_first(coded), exact, strict=True)]
    return sum(hits) / (_K * len(queries))


def _coded_distances(
    model: TrainedModel, queries: Matrix, vectors: Matrix, numbers: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Return the distances of queries to the codes of vectors of these partitions."""
    codes = model.codes
    asked, centers = codes.turned(queries), codes.turned(model.partitions.centers)
    result = np.empty((len(queries), len(vectors)), dtype=np.float32)
    for number in np.unique(numbers).tolist():
        rows = np.flatnonzero(numbers == number)
        coded = codes.stored(model.encoded(vectors[rows], numbers[rows]))
        result[:, rows] = codes.distances(asked, codes.loaded(coded, len(rows)), centers[number])
    return result


def _first(values: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    return np.argpartition(values, _K, axis=1)[:, :_K]


_INDEXED = (Element.FLOAT16, Element.FLOAT32, Element.FLOAT64, Element.UINT8)
_MAX_VERSION = 2


class VectorIndex(kind.IndexKind):
    """A vector index of one type; which type a segment has is read from its files."""

    details_type = "vectorindexdetails"
    max_version = _MAX_VERSION
    is_ranked = is_trained = has_stages = has_early_layouts = True

    def __init__(self, name: str) -> None:
        self.name = name

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether a type has vectors that can be indexed."""
        dtype_of = VectorType.of(dtype)
        return dtype_of is not None and dtype_of.element in _INDEXED

    def reads(self, folder: SegmentFolder) -> bool:
        """Whether the files have a layout that is read."""
        return folder.fits(CENTERS_FILE, lambda name: folder.open(name).num_rows >= 0)

    def wrote(self, names: Collection[str], dtype: pa.DataType) -> bool:
        """Whether there are centers of partitions."""
        return CENTERS_FILE in names

    def is_untrained(self, entry: IndexMetadata) -> bool:
        """Whether an index has no files yet: it was created without rows, or without training.

        Releases that do not record the files of a segment do not record its parameters either.
        """
        if entry.details is None or entry.files or entry.fragments():
            return False
        return read_settings(entry.details) is not None

    def build(self, rows: kind.BuildInput, folder: SegmentFolder) -> kind.BuiltSegment:
        """Train on a sample of the rows, and write a segment."""
        model, settings = model_of(rows, self.name)
        count = len(model.partitions)
        with grouped_rows(count) as groups:
            with rows.stages.stage("shuffle", rows.num_rows) as advance:
                _encode(_count(rows.batches, advance), model, groups)
            with rows.stages.stage("merge_partitions", count, "partitions") as advance:
                parts = _each(map(groups.partition, range(count)), advance)
                return write_segment(model, settings, parts, folder)

    def train(self, rows: kind.BuildInput) -> kind.Parameters:
        """Train on a sample of rows; builds with the parameters returned have the same model."""
        model, _ = model_of(rows, self.name)
        parameters = {**rows.parameters, "ivf_centroids": model.partitions.centers}
        parameters["num_partitions"] = len(model.partitions)
        if isinstance(model.codes, ProductCodes):
            parameters["pq_codebook"] = model.codes.codebook
        elif isinstance(model.codes, ScalarCodes):
            parameters["sq_bounds"] = (model.codes.lower, model.codes.upper)
        return parameters

    def untrained(self, rows: kind.BuildInput) -> kind.BuiltSegment:
        """Return a segment without files, which is trained when it is refreshed."""
        settings = BuildSettings.of(rows.parameters, self.name, _vector_type(rows.dtype))
        return segment_with(settings, ())

    def open(self, facts: kind.SegmentFacts) -> VectorSegment:
        """Open a segment."""
        return VectorSegment(facts)

    def can_merge(self, segments: Sequence[kind.SegmentFacts]) -> bool:
        """Whether segments can be merged: they were trained alike, and from rows.

        Bounds of SQ codes may differ, since codes between some bounds can be translated to others.
        """
        if not all(facts.is_trained for facts in segments):
            return False
        return _common_codes([VectorSegment(facts).model for facts in segments]) is not None

    def estimated_recall(self, segment: kind.SegmentFacts, values: pa.Array) -> float | None:
        """Return the share of nearest vectors that the model of a segment finds in a sample."""
        model = _model(VectorSegment(segment))
        return estimated_recall(model, model.indexed(values).matrix)

    def merge(
        self, segments: kind.Segments, rows: kind.BuildInput, folder: SegmentFolder
    ) -> kind.BuiltSegment:
        """Merge segments of one model, and new rows encoded by it, into one."""
        opened = [(VectorSegment(facts), ids) for facts, ids in segments]
        codes = _common_codes([segment.model for segment, _ in opened])
        if codes is None:
            raise InvalidRequestError(
                "segments of a vector index that were trained apart cannot be merged",
                action="Build the index again.",
            )
        first = opened[0][0]
        model, settings = replace(_model(first), codes=codes), _settings(first)
        with grouped_rows(len(model.partitions)) as groups:
            _encode(rows.batches, model, groups)
            parts = (_merge(opened, codes, groups, n) for n in range(len(model.partitions)))
            return write_segment(model, settings, parts, folder)

    def remap(
        self, facts: kind.SegmentFacts, row_map: kind.RowMap, folder: SegmentFolder
    ) -> kind.BuiltSegment:
        """Write a segment with other row ids."""
        segment = VectorSegment(facts)
        return write_segment(_model(segment), _settings(segment), _map(segment, row_map), folder)


def model_of(rows: kind.BuildInput, name: str) -> tuple[TrainedModel, BuildSettings]:
    """Return the model that the parameters of a build have, or train it on a sample of the rows."""
    dtype = _vector_type(rows.dtype)
    settings = BuildSettings.of(rows.parameters, name, dtype)
    return train(rows.batches, rows.num_rows, settings, dtype, rows.stages), settings


def _count(batches: Iterable[pa.RecordBatch], advance: Advance) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        advance(batch.num_rows)


def _each(
    parts: Iterable[PartitionCodes | None], advance: Advance
) -> Iterator[PartitionCodes | None]:
    for part in parts:
        yield part
        advance(1)


def _encode(batches: Iterable[pa.RecordBatch], model: TrainedModel, groups: GroupedRows) -> None:
    for batch in batches:
        vectors = model.indexed(batch.column(kind.VALUE))
        if not len(vectors.rows):
            continue
        numbers = model.assigned(vectors.matrix)
        ids = batch.column(kind.ROW_ID).to_numpy()[vectors.rows]
        groups.add(numbers, ids, model.encoded(vectors.matrix, numbers))
    groups.finish()


def _common_codes(models: Sequence[SegmentModel]) -> Codes | None:
    """Return codes for the rows of all segments; None if they were trained apart, or on no rows."""
    trained = [model for model in models if sum(model.rows.counts)]
    if not trained or any(
        model.type != trained[0].type or not model.partitions.is_same(trained[0].partitions)
        for model in models
    ):
        return None
    codes = [model.codes for model in trained]
    scalar = [each for each in codes if isinstance(each, ScalarCodes)]
    if len(scalar) == len(codes):
        return spanning_codes(scalar)
    is_same = all(
        model.codes.metadata() == codes[0].metadata() and model.codes.buffer() == codes[0].buffer()
        for model in models
    )
    return codes[0] if is_same else None


def _merge(
    opened: Sequence[tuple[VectorSegment, RowIds | None]],
    common: Codes,
    groups: GroupedRows,
    number: int,
) -> PartitionCodes | None:
    parts: list[PartitionCodes] = []
    for segment, wanted in opened:
        partition = segment.files.read_partition(number)
        codes = segment.model.codes.rows(partition.loaded)
        if isinstance(common, ScalarCodes) and isinstance(segment.model.codes, ScalarCodes):
            codes = common.translated(codes, segment.model.codes)
        if wanted is None:
            parts.append((partition.ids, codes))
            continue
        is_kept = wanted.tester()(partition.ids)
        parts.append((partition.ids[is_kept], codes[is_kept]))
    new = groups.partition(number)
    if new is not None:
        parts.append(new)
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return None
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _map(segment: VectorSegment, row_map: kind.RowMap) -> Iterator[PartitionCodes | None]:
    for _, partition in segment.files.read_partitions():
        ids = row_map(partition.ids)
        is_kept = ids != np.uint64(kind.DROPPED)
        codes = segment.model.codes.rows(partition.loaded)
        yield (ids[is_kept], codes[is_kept]) if is_kept.any() else None


def _model(segment: VectorSegment) -> TrainedModel:
    stored = segment.model
    return TrainedModel(
        type=stored.type, dtype=segment.dtype, partitions=stored.partitions, codes=stored.codes
    )


def _settings(segment: VectorSegment) -> BuildSettings:
    return BuildSettings.of(segment.parameters(), segment.model.type, segment.dtype)


def _vector_type(dtype: pa.DataType) -> VectorType:
    vector_type = VectorType.of(dtype)
    if vector_type is None:
        raise UnsupportedError(f"values of type {dtype} are not vectors")
    return vector_type


VECTOR = VectorIndex("VECTOR")
"""Kind of stored vector indices, whose entries need not say which type they have."""
VECTOR_TYPES = tuple(map(VectorIndex, TYPES))
"""Kinds of vector indices that are built."""
