"""Distances between tensors; PyTorch is optional, so that most of this runs only with it."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from lancelake.errors import InvalidRequestError, MissingPackageError
from lancelake.pylance.torch import kmeans

IS_INSTALLED = importlib.util.find_spec("torch") is not None


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.skipif(IS_INSTALLED, reason="PyTorch is installed")
def test_without_pytorch_the_error_names_the_extra() -> None:
    with pytest.raises(MissingPackageError, match=r"lancelake\[torch\]"):
        kmeans.dot_distance(_Products(), _Products())


class _Products:
    """A matrix that can be multiplied, and no more."""

    T = 1.0

    def dim(self) -> int:
        return 2

    def __matmul__(self, other: object) -> float:
        return 0.0


def test_vectors_must_be_rows_of_a_matrix() -> None:
    class Vector:
        shape = (3,)

        def dim(self) -> int:
            return 1

    with pytest.raises(InvalidRequestError, match="must be 2-D matrix"):
        kmeans.dot_distance(Vector(), Vector())


def test_distances_are_those_of_the_definition(torch: Any) -> None:
    x, y = torch.randn(20, 16), torch.rand(50, 16)
    squares = ((x[:, None] - y[None]) ** 2).sum(-1)
    assert torch.allclose(kmeans.pairwise_l2(x, y), squares, atol=1e-4)
    cosines = 1 - torch.nn.functional.cosine_similarity(x[:, None], y[None], dim=-1)
    assert torch.allclose(kmeans.pairwise_cosine(x, y), cosines, atol=1e-5)


def test_the_nearest_rows_are_found(torch: Any) -> None:
    x, y = torch.randn(20, 16), torch.rand(50, 16)
    squares = ((x[:, None] - y[None]) ** 2).sum(-1)
    numbers, least = kmeans.l2_distance(x, y)
    assert torch.equal(numbers, squares.argmin(1))
    assert torch.allclose(least, squares.min(1).values, atol=1e-3)
    assert torch.equal(kmeans.dot_distance(x, y)[0], (x @ y.T).argmax(1))
    cosines = kmeans.pairwise_cosine(x, y)
    assert torch.equal(kmeans.cosine_distance(x, y)[0], cosines.argmin(1))


def test_rows_with_nan_have_no_nearest(torch: Any) -> None:
    x = torch.randn(4, 8)
    x[2, 0] = float("nan")
    for nearest in (kmeans.l2_distance, kmeans.dot_distance):
        assert nearest(x, torch.rand(5, 8))[0].tolist()[2] == -1


def test_distances_keep_the_type_of_the_vectors(torch: Any) -> None:
    x = torch.rand(3, 4).half()
    assert kmeans.pairwise_l2(x, x).dtype == torch.float16
    with pytest.raises(InvalidRequestError, match="data types do not match"):
        kmeans.pairwise_l2(x, x.float())
