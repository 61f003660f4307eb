"""Vector indices: build, open, merge and remap of segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.engine.stages import Advance
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.index.kind import (
    DROPPED,
    ROW_ID,
    VALUE,
    BuildInput,
    BuiltSegment,
    IdKind,
    Order,
    Parameters,
    RowMap,
    SegmentFacts,
)
from lancelake.index.row_ids import RowIds
from lancelake.index.vector.codes import Codes
from lancelake.index.vector.files import CENTERS_FILE, SegmentModel
from lancelake.index.vector.grouped_rows import GroupedRows, grouped_rows
from lancelake.index.vector.model_recall import estimated_recall
from lancelake.index.vector.product_codes import ProductCodes
from lancelake.index.vector.scalar_codes import ScalarCodes, spanning_codes
from lancelake.index.vector.segment import VectorSegment
from lancelake.index.vector.settings import TYPES, BuildSettings
from lancelake.index.vector.training import TrainedModel, train
from lancelake.index.vector.vectors import Element, VectorType
from lancelake.index.vector.write import PartitionCodes, write_segment

_INDEXED = (Element.FLOAT16, Element.FLOAT32, Element.FLOAT64, Element.UINT8)
_MAX_VERSION = 2


class VectorIndex:
    """A vector index of one type; which type a segment has is read from its files."""

    details_type = "vectorindexdetails"
    max_version = _MAX_VERSION
    order = Order.ROW

    def __init__(self, name: str) -> None:
        self.name = name

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether a type has vectors that can be indexed."""
        found = VectorType.of(dtype)
        return found is not None and found.element in _INDEXED

    def reads(self, folder: SegmentFolder) -> bool:
        """Whether the files have a layout that is read."""
        return folder.fits(CENTERS_FILE, lambda _: True)

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> IdKind:
        """Return whether a segment stores addresses or stable row ids."""
        return IdKind.STABLE_ID if has_stable_row_ids else IdKind.ADDRESS

    def build(self, rows: BuildInput, folder: SegmentFolder) -> BuiltSegment:
        """Train on a sample of the rows, and write a segment."""
        model, settings = model_of(rows, self.name)
        count = len(model.partitions)
        with grouped_rows(count) as groups:
            with rows.stages.stage("shuffle", rows.num_rows) as advance:
                _encode(_counted(rows.batches, advance), model, groups)
            with rows.stages.stage("merge_partitions", count, "partitions") as advance:
                parts = _each(map(groups.partition, range(count)), advance)
                return write_segment(model, settings, parts, folder)

    def trained(self, rows: BuildInput) -> Parameters:
        """Train on a sample of rows; builds with the parameters returned have the same model."""
        model, _ = model_of(rows, self.name)
        found = {**rows.parameters, "ivf_centroids": model.partitions.centers}
        found["num_partitions"] = len(model.partitions)
        if isinstance(model.codes, ProductCodes):
            found["pq_codebook"] = model.codes.codebook
        elif isinstance(model.codes, ScalarCodes):
            found["sq_bounds"] = (model.codes.lower, model.codes.upper)
        return found

    def open(self, facts: SegmentFacts) -> VectorSegment:
        """Open a segment."""
        return VectorSegment(facts)

    def has_one_model(self, segments: Sequence[SegmentFacts]) -> bool:
        """Whether segments can be merged: they were trained alike, and from rows.

        Bounds of SQ codes may differ, since codes between some bounds can be translated to others.
        """
        return _common_codes([VectorSegment(facts).model for facts in segments]) is not None

    def estimated_recall(self, segment: SegmentFacts, values: pa.Array) -> float | None:
        """Return the share of nearest vectors that the model of a segment finds in a sample."""
        model = _model(VectorSegment(segment))
        return estimated_recall(model, model.indexed(values).matrix)

    def merge(
        self,
        segments: Sequence[tuple[SegmentFacts, RowIds | None]],
        rows: BuildInput,
        folder: SegmentFolder,
    ) -> BuiltSegment:
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
            parts = (_merged(opened, codes, groups, n) for n in range(len(model.partitions)))
            return write_segment(model, settings, parts, folder)

    def remap(self, facts: SegmentFacts, row_map: RowMap, folder: SegmentFolder) -> BuiltSegment:
        """Write a segment with other row ids."""
        segment = VectorSegment(facts)
        return write_segment(_model(segment), _settings(segment), _mapped(segment, row_map), folder)


def model_of(rows: BuildInput, name: str) -> tuple[TrainedModel, BuildSettings]:
    """Return the model that the parameters of a build have, or train it on a sample of the rows."""
    dtype = _vector_type(rows.dtype)
    settings = BuildSettings.of(rows.parameters, name, dtype)
    return train(rows.batches, rows.num_rows, settings, dtype, rows.stages), settings


def _counted(batches: Iterable[pa.RecordBatch], advance: Advance) -> Iterator[pa.RecordBatch]:
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
        vectors = model.indexed(batch.column(VALUE))
        if not len(vectors.rows):
            continue
        numbers = model.assigned(vectors.matrix)
        ids = batch.column(ROW_ID).to_numpy()[vectors.rows]
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


def _merged(
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
        kept = wanted.tester()(partition.ids)
        parts.append((partition.ids[kept], codes[kept]))
    new = groups.partition(number)
    if new is not None:
        parts.append(new)
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return None
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _mapped(segment: VectorSegment, row_map: RowMap) -> Iterator[PartitionCodes | None]:
    for _, partition in segment.files.read_partitions():
        ids = row_map(partition.ids)
        kept = ids != np.uint64(DROPPED)
        codes = segment.model.codes.rows(partition.loaded)
        yield (ids[kept], codes[kept]) if kept.any() else None


def _model(segment: VectorSegment) -> TrainedModel:
    found = segment.model
    return TrainedModel(
        type=found.type, dtype=segment.dtype, partitions=found.partitions, codes=found.codes
    )


def _settings(segment: VectorSegment) -> BuildSettings:
    return BuildSettings.of(segment.parameters(), segment.model.type, segment.dtype)


def _vector_type(dtype: pa.DataType) -> VectorType:
    found = VectorType.of(dtype)
    if found is None:
        raise UnsupportedError(f"values of type {dtype} are not vectors")
    return found


VECTOR = VectorIndex("VECTOR")
"""Kind of stored vector indices, whose entries need not say which type they have."""
VECTOR_TYPES = tuple(map(VectorIndex, TYPES))
"""Kinds of vector indices that are built."""
