"""Partitions of a vector index: their centers, and the choice of those near a query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lancelake.errors import CorruptTableError
from lancelake.format.unknown import parse
from lancelake.index.vector.metric import Matrix, Metric, distances
from lancelake.index.vector.tensors import decode_tensor, encode_tensor
from lancelake.index.vector.vectors import Element
from lancelake.proto import index_pb2

_MATRIX = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partitions:
    """Centers of the partitions, and the metric by which vectors belong to the nearest."""

    centers: Matrix
    metric: Metric
    loss: float | None = None

    def __len__(self) -> int:
        return len(self.centers)

    @property
    def dimension(self) -> int:
        """Number of values of a vector."""
        return int(self.centers.shape[1])

    def is_same(self, other: Partitions) -> bool:
        """Whether vectors belong to the same partitions."""
        return self.metric is other.metric and np.array_equal(self.centers, other.centers)

    def by_distance(self, queries: Matrix) -> npt.NDArray[np.int64]:
        """Return the partitions for each query, the nearest first."""
        metric = Metric.L2 if self.metric is Metric.COSINE else self.metric
        found = distances(metric, queries, self.centers)
        return np.argsort(found, axis=1, kind="stable")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRows:
    """First row of each partition in a file, and the number of its rows."""

    starts: tuple[int, ...]
    counts: tuple[int, ...]

    @staticmethod
    def of(counts: npt.NDArray[np.int64]) -> PartitionRows:
        """Return partitions one after the other."""
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]) if len(counts) else counts
        return PartitionRows(starts=tuple(starts.tolist()), counts=tuple(counts.tolist()))


def encode_centers(partitions: Partitions, element: Element, rows: PartitionRows) -> bytes:
    """Encode centers with the rows of the graph of each partition; zero rows without graphs."""
    message = index_pb2.IVF(offsets=rows.starts, lengths=rows.counts)
    message.centroids_tensor.CopyFrom(encode_tensor(partitions.centers, element))
    if partitions.loss is not None:
        message.loss = partitions.loss
    return message.SerializeToString()


def encode_rows(rows: PartitionRows) -> bytes:
    """Encode the rows of each partition."""
    return index_pb2.IVF(offsets=rows.starts, lengths=rows.counts).SerializeToString()


def decode_centers(data: bytes, metric: Metric) -> tuple[Partitions, PartitionRows]:
    """Decode centers and the rows of the graphs."""
    message = _message(data)
    centers = decode_tensor(message.centroids_tensor, what="centers of partitions")
    if centers.ndim != _MATRIX:
        raise CorruptTableError("centers of partitions are not a matrix")
    loss = message.loss if message.HasField("loss") else None
    return Partitions(centers=centers, metric=metric, loss=loss), _rows(message)


def decode_rows(data: bytes, total: int) -> PartitionRows:
    """Decode the rows of each partition, which must be among `total` rows."""
    rows = _rows(_message(data))
    for start, count in zip(rows.starts, rows.counts, strict=True):
        if start + count > total:
            raise CorruptTableError(f"a partition ends at row {start + count} of {total}")
    return rows


def _message(data: bytes) -> index_pb2.IVF:
    message = index_pb2.IVF()
    parse(message, data, what="partitions of a vector index")
    return message


def _rows(message: index_pb2.IVF) -> PartitionRows:
    if len(message.offsets) != len(message.lengths):
        raise CorruptTableError("partitions of a vector index have no row counts")
    return PartitionRows(starts=tuple(message.offsets), counts=tuple(message.lengths))
