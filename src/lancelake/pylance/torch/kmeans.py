"""Clusters of vectors, trained with PyTorch, as in pylance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.pylance.log import LOGGER
from lancelake.pylance.torch import preferred_device
from lancelake.pylance.torch.dist import torch

__all__ = [
    "KMeans",
    "argmin_l2",
    "cosine_distance",
    "dot_distance",
    "l2_distance",
    "pairwise_cosine",
    "pairwise_l2",
]


# Rows compared at a time: on a CPU, and the fewest when a GPU is short of memory.
_CPU_ROWS = 128 * 1024
_FEWEST_ROWS = 128
# Part of the free memory of a GPU that the distances of one step may fill.
_MEMORY_PART = 4

Nearest = tuple[Any, Any]


def pairwise_cosine(x: Any, y: Any, *, y2: Any = None) -> Any:
    """Return the cosine distance of each row of `x` to each row of `y`.

    Args:
        x: A tensor of M rows.
        y: A tensor of N rows.
        y2: The lengths of the rows of `y`, if they are known.

    Returns:
        A tensor of M rows and N columns.

    Raises:
        InvalidRequestError: A tensor is not two-dimensional.

    Examples:
        >>> pairwise_cosine(torch.eye(2), torch.eye(2))  # doctest: +SKIP
        tensor([[0., 1.],
                [1., 0.]])
    """
    _ensure_matrices(x, y)
    lengths = torch().linalg.norm(y, dim=1) if y2 is None else y2
    return 1 - (x @ y.T) / torch().linalg.norm(x, dim=1, keepdim=True) / lengths.reshape(1, -1)


def cosine_distance(vectors: Any, centroids: Any) -> Nearest:
    """Find the nearest centroid of each vector by cosine distance.

    Args:
        vectors: A tensor of vectors.
        centroids: A tensor of centroids.

    Returns:
        The number of the centroid and the distance to it, of each vector.

    Raises:
        InvalidRequestError: A tensor is not two-dimensional.

    Examples:
        >>> cosine_distance(torch.eye(2), torch.eye(2))[0]  # doctest: +SKIP
        tensor([0, 1])
    """
    _ensure_matrices(vectors, centroids)
    lengths = torch().linalg.norm(centroids, dim=1)
    return _in_steps(
        vectors, centroids, lambda rows: _nearest(pairwise_cosine(rows, centroids, y2=lengths))
    )


def pairwise_l2(x: Any, y: Any, y2: Any = None) -> Any:
    """Return the squared Euclidean distance of each row of `x` to each row of `y`.

    Args:
        x: A tensor of M rows.
        y: A tensor of N rows of the same type.
        y2: The squared lengths of the rows of `y`, if they are known.

    Returns:
        A tensor of M rows and N columns, of the same type.

    Raises:
        InvalidRequestError: A tensor is not two-dimensional, or the types differ.

    Examples:
        >>> pairwise_l2(torch.eye(2), torch.eye(2))  # doctest: +SKIP
        tensor([[0., 2.],
                [2., 0.]])
    """
    _ensure_matrices(x, y)
    if x.dtype != y.dtype or (y2 is not None and x.dtype != y2.dtype):
        raise InvalidRequestError("pairwise_l2 data types do not match")
    is_wide = x.dtype in (torch().float32, torch().float64)
    # Sums of 16-bit products lose digits, and some processors do not multiply them.
    left, right = (x, y) if is_wide else (x.float(), y.float())
    squares = (right * right).sum(dim=1) if y2 is None else y2.to(right.dtype)
    distances = (left * left).sum(dim=1, keepdim=True) + squares.reshape(1, -1) - 2 * left @ right.T
    return distances.to(x.dtype)


def argmin_l2(x: Any, y: Any) -> Nearest:
    """Return the squared distance of each row of `x` to its nearest row of `y`, and that row.

    Args:
        x: A tensor of M rows.
        y: A tensor of N rows.

    Returns:
        Two tensors of M rows and one column: the distances, and the numbers of the rows.

    Examples:
        >>> argmin_l2(torch.eye(2), torch.eye(2))[1].reshape(-1)  # doctest: +SKIP
        tensor([0, 1])
    """
    distances, numbers = torch().min(torch().cdist(x, y, p=2.0), dim=1, keepdim=True)
    return distances.pow(2), numbers


def l2_distance(vectors: Any, centroids: Any, y2: Any = None) -> Nearest:
    """Find the nearest centroid of each vector by Euclidean distance.

    Args:
        vectors: A tensor of vectors.
        centroids: A tensor of centroids.
        y2: Accepted for compatibility; the squared lengths of the centroids are not needed.

    Returns:
        The number of the centroid, -1 for vectors with NaN, and the squared distance to it.

    Raises:
        InvalidRequestError: A tensor is not two-dimensional.

    Examples:
        >>> l2_distance(torch.eye(2), torch.eye(2))[0]  # doctest: +SKIP
        tensor([0, 1])
    """
    _ensure_matrices(vectors, centroids)

    def nearest(rows: Any) -> Nearest:
        distances, numbers = argmin_l2(rows, centroids)
        return numbers.reshape(-1), distances.reshape(-1)

    return _numbered(_in_steps(vectors, centroids, nearest))


def dot_distance(x: Any, y: Any) -> Nearest:
    """Find the row of `y` with the largest inner product with each row of `x`.

    Args:
        x: A tensor of M rows.
        y: A tensor of N rows.

    Returns:
        The number of the row, -1 for rows with NaN, and the distance 1 - product.

    Raises:
        InvalidRequestError: A tensor is not two-dimensional.

    Examples:
        >>> dot_distance(torch.eye(2), torch.eye(2))[0]  # doctest: +SKIP
        tensor([0, 1])
    """
    _ensure_matrices(x, y)
    return _numbered(_nearest(1 - x @ y.T))


def _nearest(distances: Any) -> Nearest:
    least, numbers = torch().min(distances, dim=1)
    return numbers, least


def _numbered(found: Nearest) -> Nearest:
    """Replace the numbers of rows without a distance with -1."""
    numbers, distances = found
    return torch().where(distances.isnan(), -1, numbers), distances


def _in_steps(vectors: Any, centroids: Any, nearest: Callable[[Any], Nearest]) -> Nearest:
    """Search for a part of the vectors at a time, for fewer when a GPU is short of memory."""
    rows = _rows_at_once(centroids)
    while True:
        try:
            parts = [nearest(part) for part in vectors.split(rows)]
        except torch().cuda.OutOfMemoryError:
            if rows // 2 < _FEWEST_ROWS:
                raise
            rows //= 2
        else:
            numbers, distances = zip(*parts, strict=True)
            return torch().cat(numbers), torch().cat(distances)


def _rows_at_once(centroids: Any) -> int:
    if centroids.device.type != "cuda":
        return _CPU_ROWS
    free, _ = torch().cuda.mem_get_info()
    row_bytes = len(centroids) * int(centroids.element_size())
    return max(_FEWEST_ROWS, int(free) // row_bytes // _MEMORY_PART)


def _ensure_matrices(x: Any, y: Any) -> None:
    if x.dim() != 2 or y.dim() != 2:  # noqa: PLR2004  # rows and columns
        shapes = f"x.shape={tuple(x.shape)}, y.shape={tuple(y.shape)}"
        raise InvalidRequestError(f"x and y must be 2-D matrix, got: {shapes}")


_METRICS = {"l2": "l2", "euclidean": "l2", "dot": "dot", "cosine": "cosine"}
_ROWS = 10240
# Factor by which the halves of a divided cluster differ from its center.
_SHIFT = 0.005


class KMeans:
    """Model of `k` clusters: `fit` trains it, and `transform` finds the cluster of each vector.

    Examples:
        >>> model = KMeans(2, device="cpu")  # doctest: +SKIP
        >>> model.fit(np.array([[0.0], [0.1], [9.0]], np.float32))  # doctest: +SKIP
        >>> len(set(model.transform(np.array([[0.0], [9.0]], np.float32))))  # doctest: +SKIP
        2
    """

    def __init__(
        self,
        k: int,
        *,
        metric: str = "l2",
        init: Literal["random"] = "random",
        max_iters: int = 50,
        tolerance: float = 1e-4,
        centroids: Any = None,
        seed: int | None = None,
        device: Any = None,
    ) -> None:
        """Describe the training.

        Args:
            k: The number of clusters.
            metric: `l2`, `cosine` or `dot`.
            init: How the first centroids are chosen: `random` vectors.
            max_iters: Rounds of training, at most.
            tolerance: The training ends when the total distance changes by a smaller part.
            centroids: A tensor of the first centroids, or those of a trained model.
            seed: Makes the choice of the first centroids repeatable.
            device: Where to compute; by default a GPU if there is one.

        Raises:
            InvalidRequestError: The metric is unknown.
            MissingPackageError: PyTorch is not installed.
        """
        torch()
        if metric.lower() not in _METRICS:
            problem = f"Only l2/cosine/dot is supported as metric type, got: {metric}"
            raise InvalidRequestError(problem, found=metric)
        self.k, self.init, self.max_iters = k, init, max_iters
        self.metric = _METRICS[metric.lower()]
        self.tolerance, self.seed = tolerance, seed
        self.centroids = centroids
        self.device = preferred_device(device)
        self.total_distance = 0.0

    def __repr__(self) -> str:
        """Name the settings."""
        return f"KMeans(k={self.k}, metric={self.metric}, device={self.device})"

    def fit(self, data: Any, column: str | None = None) -> None:
        """Train the model.

        Args:
            data: Vectors as an Arrow array of fixed-size lists or tensors, a NumPy array or a
                tensor; or an iterable of tensors that can be iterated several times, such as a
                `LanceDataset` of `lancelake.pylance.torch.data`. The iterable needs a model with
                centroids.
            column: The column of the vectors, if the iterable yields dictionaries.

        Raises:
            InvalidRequestError: The data is of another kind, or there is nothing to start with.
        """
        tensor = _tensor(data)
        if tensor is not None:
            self._choose_centroids(tensor)
        elif not isinstance(data, Iterable):
            raise _unknown(data)
        if self.centroids is None:
            raise InvalidRequestError("KMeans needs centroids to be trained with an iterable")
        self.centroids = self.centroids.to(self.device)
        chunks = data if tensor is None else _Chunks(tensor)
        self.total_distance = 0.0
        for number in range(self.max_iters):
            total = self._round(chunks, column)
            change = abs(total - self.total_distance)
            self.total_distance = total
            if change <= self.tolerance * total:
                LOGGER.debug("KMeans converged in round %s", number)
                return

    def transform(self, data: Any) -> Any:
        """Find the cluster of each vector.

        Args:
            data: Vectors, as in `fit` but for iterables.

        Returns:
            A tensor of the numbers of the clusters, -1 for vectors with NaN.

        Raises:
            InvalidRequestError: The data is of another kind, or the model is not trained.
        """
        tensor = _tensor(data)
        if tensor is None:
            raise _unknown(data)
        if self.centroids is None:
            raise InvalidRequestError("KMeans must be trained first", action="Call fit.")
        return self._assign(tensor.to(self.device))[0]

    def _choose_centroids(self, vectors: Any) -> None:
        if self.centroids is not None:
            return
        generator = torch().Generator()
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed)
        rows = torch().randperm(len(vectors), generator=generator)[: self.k]
        if len(rows) < self.k:
            problem = f"{self.k} clusters need as many vectors, found {len(vectors)}"
            raise InvalidRequestError(problem, clusters=self.k)
        self.centroids = vectors[rows.to(vectors.device)]

    def _round(self, chunks: Iterable[Any], column: str | None) -> float:
        """Move the centroids to the means of their vectors; return the distance before."""
        centers = self.centroids.to(self.device)
        # Sums of 16-bit floats would lose digits.
        sums = torch().zeros(centers.shape, device=self.device, dtype=torch().float32)
        counts = torch().zeros(len(centers), device=self.device)
        total = 0.0
        for chunk in chunks:
            vectors = (chunk if column is None else chunk[column]).to(self.device)
            numbers, distances = self._assign(vectors)
            is_assigned = numbers >= 0
            members, vectors = numbers[is_assigned], vectors[is_assigned].float()
            if self.metric == "cosine":
                vectors = torch().nn.functional.normalize(vectors)
            sums.index_add_(0, members, vectors)
            counts.index_add_(0, members, torch().ones(len(members), device=self.device))
            total += float(distances.nansum())
        if counts.sum() > 0:
            self.centroids = self._move(sums, counts).to(centers.dtype)
        return total

    def _move(self, sums: Any, counts: Any) -> Any:
        """Return the means of the clusters; empty clusters take a part of the largest ones."""
        means = sums / counts.clamp(min=1)[:, None]
        sizes = counts.clone()
        for empty in (counts == 0).nonzero().reshape(-1).tolist():
            largest = int(sizes.argmax())
            means[empty] = means[largest] * (1 + _SHIFT)
            means[largest] = means[largest] * (1 - _SHIFT)
            sizes[largest] = sizes[empty] = sizes[largest] / 2
        return torch().nn.functional.normalize(means) if self.metric == "cosine" else means

    def _assign(self, vectors: Any) -> tuple[Any, Any]:
        # Differences of 16-bit distances would lose the digits that tell centers apart.
        centers, vectors = self.centroids.to(self.device).float(), vectors.float()
        if self.metric == "dot":
            return dot_distance(vectors, centers)
        if self.metric == "cosine":
            # The first centroids are vectors of any length.
            normalize = torch().nn.functional.normalize
            centers, vectors = normalize(centers), normalize(vectors)
        return l2_distance(vectors, centers)


class _Chunks:
    """Chunks of a tensor, for repeated iteration."""

    def __init__(self, vectors: Any) -> None:
        self._vectors = vectors

    def __iter__(self) -> Iterator[Any]:
        return iter(self._vectors.split(_ROWS))


def _tensor(data: Any) -> Any:
    """Return vectors as a tensor, None if the data is not an array."""
    if isinstance(data, torch().Tensor):
        return data
    if isinstance(data, pa.FixedShapeTensorArray):
        data = data.storage
    if isinstance(data, pa.FixedSizeListArray):
        values = data.flatten().to_numpy(zero_copy_only=False)
        data = values.reshape(len(data), data.type.list_size)
    if not isinstance(data, np.ndarray):
        return None
    return torch().from_numpy(data if data.flags.writeable else data.copy())


def _unknown(data: Any) -> InvalidRequestError:
    return InvalidRequestError(
        "KMeans accepts a FixedSizeListArray, a FixedShapeTensorArray, a NumPy array or a tensor, "
        f"got: {type(data).__name__}",
        found=type(data).__name__,
    )
