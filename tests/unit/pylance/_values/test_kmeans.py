"""Clusters of vectors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lancelake.pylance.util import KMeans

CORNERS = np.array([[0, 0], [9, 0], [0, 9], [9, 9]], dtype=np.float32)


def points() -> np.ndarray:
    noise = np.random.default_rng(3).normal(scale=0.1, size=(400, 2)).astype(np.float32)
    return np.tile(CORNERS, (100, 1)) + noise


@pytest.mark.parametrize("metric", ["l2", "euclidean", "cosine", "dot"])
def test_each_vector_has_a_cluster(metric: str) -> None:
    model = KMeans(4, metric_type=metric)
    model.fit(points())
    found = model.predict(points())
    assert found.type == pa.uint32()
    assert set(found.to_pylist()) <= set(range(4))


def test_the_center_of_one_cluster_is_the_mean() -> None:
    model = KMeans(1)
    model.fit(points())
    centers = model.centroids
    assert centers is not None
    assert np.allclose(centers.to_numpy_ndarray(), points().mean(axis=0), atol=1e-4)


def test_given_centers_need_no_training() -> None:
    centers = pa.FixedSizeListArray.from_arrays(pa.array(CORNERS.reshape(-1)), 2)
    found = KMeans(4, centroids=centers).predict(points())
    assert found.to_pylist() == [0, 1, 2, 3] * 100


def test_an_untrained_model_predicts_nothing() -> None:
    model = KMeans(2)
    assert model.centroids is None
    with pytest.raises(RuntimeError, match="must fit"):
        model.predict(points())


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (points().astype(np.float64), "must be float32"),
        (points().reshape(-1), "2-D array"),
        ([[1.0, 2.0]], "FixedSizeListArray, Tensor or numpy"),
    ],
)
def test_other_data_are_refused(data: object, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        KMeans(2).fit(data)


def test_fewer_vectors_than_clusters_are_refused() -> None:
    with pytest.raises(RuntimeError, match="sufficient data points"):
        KMeans(8).fit(points()[:3])
