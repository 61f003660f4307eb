"""Clusters of vectors, trained with PyTorch, as in pylance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from lancelake.errors import InvalidRequestError
from lancelake.pylance.log import LOGGER
from lancelake.pylance.torch import preferred_device
from lancelake.pylance.torch.distance import dot_distance, l2_distance
from lancelake.pylance.torch.installed import torch

__all__ = ["KMeans"]

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
        return self._assigned(tensor.to(self.device))[0]

    def _choose_centroids(self, vectors: Any) -> None:
        if self.centroids is not None:
            return
        generator = torch().Generator()
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed)
        chosen = torch().randperm(len(vectors), generator=generator)[: self.k]
        if len(chosen) < self.k:
            problem = f"{self.k} clusters need as many vectors, found {len(vectors)}"
            raise InvalidRequestError(problem, clusters=self.k)
        self.centroids = vectors[chosen.to(vectors.device)]

    def _round(self, chunks: Iterable[Any], column: str | None) -> float:
        """Move the centroids to the means of their vectors; return the distance before."""
        centers = self.centroids.to(self.device)
        # Sums of 16-bit floats would lose digits.
        sums = torch().zeros(centers.shape, device=self.device, dtype=torch().float32)
        counts = torch().zeros(len(centers), device=self.device)
        total = 0.0
        for chunk in chunks:
            vectors = (chunk if column is None else chunk[column]).to(self.device)
            numbers, distances = self._assigned(vectors)
            known = numbers >= 0
            members, vectors = numbers[known], vectors[known].float()
            if self.metric == "cosine":
                vectors = torch().nn.functional.normalize(vectors)
            sums.index_add_(0, members, vectors)
            counts.index_add_(0, members, torch().ones(len(members), device=self.device))
            total += float(distances.nansum())
        if counts.sum() > 0:
            self.centroids = self._moved(sums, counts).to(centers.dtype)
        return total

    def _moved(self, sums: Any, counts: Any) -> Any:
        """Return the means of the clusters; empty clusters take a part of the largest ones."""
        means = sums / counts.clamp(min=1)[:, None]
        sizes = counts.clone()
        for empty in (counts == 0).nonzero().reshape(-1).tolist():
            largest = int(sizes.argmax())
            means[empty] = means[largest] * (1 + _SHIFT)
            means[largest] = means[largest] * (1 - _SHIFT)
            sizes[largest] = sizes[empty] = sizes[largest] / 2
        return torch().nn.functional.normalize(means) if self.metric == "cosine" else means

    def _assigned(self, vectors: Any) -> tuple[Any, Any]:
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
