"""Training of a vector index: centers of partitions and codes, from a sample of the rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.engine.stages import Stages
from lancelake.errors import InvalidRequestError
from lancelake.index.kind import VALUE
from lancelake.index.vector.clustering import (
    nearest_centers,
    partition_centers,
    train_codebook,
)
from lancelake.index.vector.codes import Codes
from lancelake.index.vector.flat_codes import FlatCodes
from lancelake.index.vector.metric import Matrix, Metric, normalized
from lancelake.index.vector.partitions import Partitions
from lancelake.index.vector.product_codes import ProductCodes
from lancelake.index.vector.rotated_codes import new_settings, rotated_codes
from lancelake.index.vector.scalar_codes import ScalarCodes
from lancelake.index.vector.settings import BuildSettings
from lancelake.index.vector.vectors import Vectors, VectorType

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
    found = dtype.vectors(values)
    matrix, rows = found.matrix, found.rows
    if matrix.dtype == np.uint8:
        return found
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
    found: list[Matrix] = []
    seen = 0
    for batch in batches:
        places = np.arange(-seen % step, batch.num_rows, step)
        seen += batch.num_rows
        values = batch.column(VALUE)
        if step > 1:
            values = values.take(pa.array(places))
        found.append(indexed_vectors(values, dtype, metric).matrix)
    whole = np.concatenate(found) if found else np.zeros((0, dtype.dimension), dtype=np.float32)
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
        raise InvalidRequestError(
            f"Not enough rows to train PQ. Requires {least} rows but only {len(sample)} available"
        )
    wanted = _CODE_SAMPLE << settings.bits
    chosen = sample[:: max(1, len(sample) // wanted)][:wanted]
    if settings.metric is not Metric.DOT:
        numbers = nearest_centers(chosen, partitions.centers, settings.accelerator)
        chosen = chosen - partitions.centers[numbers]
    device = settings.accelerator
    return train_codebook(chosen, settings.parts, settings.bits, settings.max_iters, device)
