"""`KMeans`: clusters of vectors, as in pylance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.index.vector.clustering import clustered
from lancelake.index.vector.metric import normalized

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
            msg = f"Invalid metric_type: {metric_type}"
            raise ValueError(msg)
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
        self._centers = clustered(vectors, self.k, self._max_iters)[0]

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
