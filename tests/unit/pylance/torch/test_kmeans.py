"""Clusters trained with PyTorch, which is optional: most of this runs only with it."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lancelake.errors import InvalidRequestError, MissingPackageError
from lancelake.pylance.torch.kmeans import KMeans

VECTORS = np.arange(128, dtype=np.float32).reshape(-1, 8)
IS_INSTALLED = importlib.util.find_spec("torch") is not None


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.skipif(IS_INSTALLED, reason="PyTorch is installed")
def test_without_pytorch_the_error_names_the_extra() -> None:
    with pytest.raises(MissingPackageError, match=r"lancelake\[torch\]"):
        KMeans(4)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_every_vector_has_a_cluster(torch: Any, metric: str) -> None:
    model = KMeans(4, metric=metric, device="cpu", seed=1)
    model.fit(VECTORS)
    found = model.transform(VECTORS)
    assert model.centroids.shape == (4, 8)
    assert found.shape == (16,)
    assert 0 <= int(found.min()) <= int(found.max()) < 4


def test_equally_many_vectors_are_near_each_center(torch: Any) -> None:
    model = KMeans(4, device="cpu", seed=1)
    model.fit(pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), 8))
    _, counts = torch.unique(model.transform(VECTORS), return_counts=True)
    assert len(counts) == 4
    assert counts.max() <= 8


def test_vectors_with_nan_have_no_cluster(torch: Any) -> None:
    vectors = VECTORS.copy()
    vectors[1] = np.nan
    model = KMeans(4, centroids=torch.rand(4, 8), device="cpu")
    assert (model.transform(vectors) == -1).tolist() == [i == 1 for i in range(16)]


def test_an_iterable_trains_a_model_with_centroids(torch: Any) -> None:
    chunks = [{"v": torch.from_numpy(VECTORS[:8])}, {"v": torch.from_numpy(VECTORS[8:])}]
    model = KMeans(2, centroids=torch.from_numpy(VECTORS[[0, 15]]), device="cpu")
    model.fit(chunks, column="v")
    assert model.transform(VECTORS).tolist() == [0] * 8 + [1] * 8
    with pytest.raises(InvalidRequestError, match="needs centroids"):
        KMeans(2, device="cpu").fit(chunks, column="v")


def test_what_cannot_be_trained_is_refused(torch: Any) -> None:
    with pytest.raises(InvalidRequestError, match="metric"):
        KMeans(2, metric="hamming")
    with pytest.raises(InvalidRequestError, match="NumPy array or a tensor"):
        KMeans(2, device="cpu").fit(5)
    with pytest.raises(InvalidRequestError, match="as many vectors"):
        KMeans(99, device="cpu").fit(VECTORS)
    with pytest.raises(InvalidRequestError, match="trained first"):
        KMeans(2, device="cpu").transform(VECTORS)


def test_vectors_of_half_precision_keep_their_clusters(torch: Any) -> None:
    chance = np.random.default_rng(3)
    centers = chance.normal(size=(8, 64)) * 5
    vectors = (centers[np.arange(800) % 8] + chance.normal(size=(800, 64))).astype(np.float32)
    first = torch.from_numpy(vectors[:8])
    exact = KMeans(8, metric="cosine", centroids=first, device="cpu")
    exact.fit(vectors)
    half = KMeans(8, metric="cosine", centroids=first.half(), device="cpu")
    half.fit(torch.from_numpy(vectors).half())
    assert exact.transform(vectors).tolist() == [number % 8 for number in range(800)]
    assert half.transform(vectors).tolist() == exact.transform(vectors).tolist()
