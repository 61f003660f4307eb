"""Models of vector indices."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.core.values import indices
from lancelake.core.values.metadata import FileAt, Location
from lancelake.core.values.reads import normalized
from lancelake.data.codec.readers import forget_readers
from lancelake.errors import InvalidRequestError
from lancelake.pylance._values.opened import call_text

_METRIC, _PARTS, _BITS = "distance_type", "num_subvectors", "num_bits"


class IvfModel:
    """Centers of the partitions of a vector index, and the metric that they were trained for."""

    def __init__(self, centroids: pa.Array, distance_type: str) -> None:
        self.centroids = centroids
        self.distance_type = distance_type

    def __repr__(self) -> str:
        return call_text(self, num_partitions=self.num_partitions, distance_type=self.distance_type)

    @property
    def num_partitions(self) -> int:
        """Number of partitions."""
        return len(self.centroids)

    def save(self, uri: str, *, storage_options: dict[str, str] | None = None) -> None:
        """Write the model to a Lance file."""
        metadata = {_METRIC: self.distance_type}
        _write(uri, "centroids", self.centroids, metadata, storage_options)

    @classmethod
    def load(cls, uri: str, *, storage_options: dict[str, str] | None = None) -> Self:
        """Read a model from a Lance file."""
        values, metadata = _read(uri, "centroids", storage_options)
        return cls(values, metadata[_METRIC])


class PqModel:
    """Codebook of a vector index with PQ codes."""

    def __init__(
        self, num_subvectors: int, codebook: pa.FixedSizeListArray, *, num_bits: int = 8
    ) -> None:
        self.num_subvectors = num_subvectors
        self.num_bits = num_bits
        self.codebook = codebook

    def __repr__(self) -> str:
        sizes = {"num_subvectors": self.num_subvectors, "num_bits": self.num_bits}
        return call_text(self, dimension=self.dimension, **sizes)

    @property
    def dimension(self) -> int:
        """Number of values of a vector."""
        return int(self.codebook.type.list_size)

    def save(self, uri: str, *, storage_options: dict[str, str] | None = None) -> None:
        """Write the model to a Lance file."""
        metadata = {_PARTS: str(self.num_subvectors), _BITS: str(self.num_bits)}
        _write(uri, "codebook", self.codebook, metadata, storage_options)

    @classmethod
    def load(cls, uri: str, *, storage_options: dict[str, str] | None = None) -> Self:
        """Read a model from a Lance file."""
        values, metadata = _read(uri, "codebook", storage_options)
        return cls(int(metadata[_PARTS]), values, num_bits=int(metadata.get(_BITS, "8")))


def vector_lists(matrix: npt.NDArray[np.float32]) -> pa.FixedSizeListArray:
    """Return a matrix as an array of vectors."""
    flat = pa.array(np.ascontiguousarray(matrix).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[-1])


def file_folder(uri: str, options: Mapping[str, str] | None) -> tuple[indices.SegmentFolder, str]:
    """Return the folder of a file, and its name."""
    whole = Location.parse(uri, options)
    parent, _, name = str(whole.uri).rpartition("/")
    root, _, folder = parent.rpartition("/")
    return indices.SegmentFolder(
        place=FileAt(root=Location.parse(root, options), path=folder)
    ), name


def open_file(uri: str, options: Mapping[str, str] | None) -> indices.IndexFileReader:
    """Open a file that may have been written again since it was read, unlike files of a table."""
    folder, name = file_folder(uri, options)
    forget_readers(folder.place.root, [folder.file(name).uri])
    return folder.open(name)


def _write(
    uri: str,
    column: str,
    values: pa.Array,
    metadata: Mapping[str, str],
    options: Mapping[str, str] | None,
) -> None:
    folder, name = file_folder(uri, options)
    schema = pa.schema([pa.field(column, values.type)])
    file = folder.create(name, schema)
    file.write(pa.RecordBatch.from_arrays([values], schema=schema))
    file.finish(metadata)


def _read(
    uri: str, column: str, options: Mapping[str, str] | None
) -> tuple[pa.FixedSizeListArray, dict[str, str]]:
    file = open_file(uri, options)
    file.require(column)
    vectors = file.read(columns=[column]).column(0).combine_chunks()
    values = pa.concat_arrays(vectors.chunks) if isinstance(vectors, pa.ChunkedArray) else vectors
    return values, file.metadata


_ROUNDS = 50
_METRICS = {"l2": "l2", "euclidean": "l2", "dot": "dot", "cosine": "cosine"}

_Matrix = npt.NDArray[np.float32]


class KMeans:
    """Model of clusters: `fit` trains it, and `predict` finds the cluster of each vector."""

    def __init__(
        self,
        k: int,
        metric_type: str = "l2",
        max_iters: int = _ROUNDS,
        centroids: pa.FixedSizeListArray | None = None,
    ) -> None:
        if metric_type.lower() not in _METRICS:
            raise ValueError(f"Invalid metric_type: {metric_type}")
        self.k = k
        self._metric_type = _METRICS[metric_type.lower()]
        self._max_iters = max_iters
        self._centers = None if centroids is None else _matrix(centroids)

    def __repr__(self) -> str:
        return f"lance.KMeans(k={self.k}, metric_type={self._metric_type})"

    @property
    def centroids(self) -> pa.FixedShapeTensorArray | None:
        """Centers of the clusters; None before the model is trained."""
        if self._centers is None:
            return None
        width = self._centers.shape[1]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(self._centers.reshape(-1)), width)
        kind = pa.fixed_shape_tensor(pa.float32(), (width,))
        return pa.FixedShapeTensorArray.from_storage(kind, lists)

    def fit(self, data: pa.FixedSizeListArray | pa.FixedShapeTensorArray | np.ndarray) -> None:
        """Train the model with vectors of 32-bit floats; a former training is forgotten."""
        vectors = _matrix(data)
        if len(vectors) < self.k:
            msg = (
                "Error training KMeans: training does not have sufficient data points: "
                f"n({len(vectors)}) is smaller than k({self.k})"
            )
            raise RuntimeError(msg)
        if self._metric_type == "cosine":
            vectors = normalized(vectors)
        self._centers = indices.clustered(vectors, self.k, self._max_iters)[0]

    def predict(
        self, data: pa.FixedSizeListArray | pa.FixedShapeTensorArray | np.ndarray
    ) -> pa.UInt32Array:
        """Return the number of the cluster of each vector."""
        if self._centers is None:
            raise RuntimeError("KMeans must fit (train) first")
        vectors = _matrix(data)
        if self._metric_type == "cosine":
            vectors = normalized(vectors)
        products = vectors @ self._centers.T
        if self._metric_type == "dot":
            return pa.array(products.argmax(axis=1), pa.uint32())
        squares = (self._centers**2).sum(axis=1)
        return pa.array((squares - 2 * products).argmin(axis=1), pa.uint32())


def _matrix(data: object) -> _Matrix:
    """Return vectors as rows of a matrix."""
    if isinstance(data, pa.FixedShapeTensorArray):
        if len(data.type.shape) != 1:
            shape = f"{len(data.type.shape)}-D"
            raise ValueError(f"Fixed shape tensor array must be a 1-D array, got {shape}")
        data = data.storage
    if isinstance(data, pa.FixedSizeListArray):
        if data.type.value_type != pa.float32():
            raise ValueError(f"Array must be float32 type, got: {data.type.value_type}")
        values = data.flatten().to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(values.reshape(len(data), data.type.list_size))
    if not isinstance(data, np.ndarray):
        raise ValueError("Data must be a FixedSizeListArray, Tensor or numpy array")  # as pylance
    if len(data.shape) != 2:  # noqa: PLR2004  # rows and columns
        raise ValueError(f"Numpy array must be a 2-D array, got {len(data.shape)}-D")
    if data.dtype != np.float32:
        raise ValueError(f"Numpy array must be float32 type, got: {data.dtype}")
    return np.ascontiguousarray(data)


_DTYPES = ("float16", "float32", "float64")


def build_rq_model(dimension: int, num_bits: int = 5, dtype: str = "float32") -> str:
    """Return the model of RQ codes, for `rabitq_model` of `create_index_uncommitted`."""
    if dimension <= 0 or dimension % 8:
        raise InvalidRequestError("vector dimension must be divisible by 8 for IVF_RQ")
    if num_bits not in indices.ROTATED_BITS:
        raise InvalidRequestError(f"num_bits of IVF_RQ must be 1 to 9, not {num_bits}")
    if dtype not in _DTYPES:
        raise InvalidRequestError(f"vectors of {dtype} have no RQ codes")
    return json.dumps(indices.new_settings(dimension, num_bits))
