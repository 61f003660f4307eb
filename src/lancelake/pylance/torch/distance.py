"""Distances between the rows of two tensors, as in pylance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lancelake.errors import InvalidRequestError
from lancelake.pylance.torch.installed import torch

__all__ = [
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
    known = (right * right).sum(dim=1) if y2 is None else y2.to(right.dtype)
    distances = (left * left).sum(dim=1, keepdim=True) + known.reshape(1, -1) - 2 * left @ right.T
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
            found = [nearest(part) for part in vectors.split(rows)]
        except torch().cuda.OutOfMemoryError:
            if rows // 2 < _FEWEST_ROWS:
                raise
            rows //= 2
        else:
            numbers, distances = zip(*found, strict=True)
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
