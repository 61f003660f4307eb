"""RQ codes: distances that are estimated from them, and what is stored of them."""

from __future__ import annotations

import numpy as np
import pytest

from lancelake.errors import UnsupportedError
from lancelake.index.vector.rotated_codes import RotatedCodes, new_settings, rotated_codes
from lancelake.index.vector.vectors import Metric, distances, normalized

CHANCE = np.random.default_rng(5)
DIMENSION = 64
CENTER = CHANCE.standard_normal(DIMENSION).astype(np.float32)
VECTORS = CENTER + CHANCE.standard_normal((100, DIMENSION)).astype(np.float32)
QUERIES = CENTER + CHANCE.standard_normal((9, DIMENSION)).astype(np.float32)


def new_codes(metric: Metric, dimension: int, bits: int) -> RotatedCodes:
    return rotated_codes(metric, dimension, new_settings(dimension, bits))


@pytest.mark.parametrize("metric", [Metric.L2, Metric.COSINE, Metric.DOT])
@pytest.mark.parametrize(("bits", "most"), [(1, 0.2), (2, 0.1), (5, 0.015), (9, 0.002)])
@pytest.mark.parametrize("queries", [1, 9])
def test_estimated_distances_are_near_exact_ones(
    metric: Metric, bits: int, most: float, queries: int
) -> None:
    vectors, asked = VECTORS, QUERIES[:queries]
    if metric is Metric.COSINE:
        vectors, asked = normalized(vectors), normalized(asked)
    center = vectors.mean(axis=0)
    codes = new_codes(metric, DIMENSION, bits)
    rows = codes.encode(vectors, np.broadcast_to(center, vectors.shape))
    loaded = codes.loaded(codes.stored(rows), len(rows))
    found = codes.distances(codes.turned(asked), loaded, codes.turned(center[np.newaxis])[0])
    exact = distances(metric, asked, vectors)
    assert np.abs(found - exact).mean() < most * exact.std() * 4


@pytest.mark.parametrize("bits", [1, 2, 5, 9])
def test_stored_rows_are_loaded_as_they_were(bits: int) -> None:
    codes = new_codes(Metric.L2, DIMENSION, bits)
    rows = codes.encode(VECTORS, np.broadcast_to(CENTER, VECTORS.shape))
    stored = codes.stored(rows)
    assert len(stored) == len(codes.fields())
    assert np.array_equal(codes.loaded(stored, len(rows)), rows)


def test_decoded_residuals_are_near_those_that_were_encoded() -> None:
    codes = new_codes(Metric.L2, DIMENSION, 6)
    found = codes.decode(codes.encode(VECTORS, np.broadcast_to(CENTER, VECTORS.shape)))
    assert np.abs(found - (VECTORS - CENTER)).max() < 0.2


def test_a_vector_at_the_center_has_its_distance() -> None:
    codes = new_codes(Metric.L2, DIMENSION, 1)
    rows = codes.encode(CENTER[np.newaxis], CENTER[np.newaxis])
    found = codes.distances(codes.turned(QUERIES), rows, codes.turned(CENTER[np.newaxis])[0])
    np.testing.assert_allclose(
        found[:, 0], ((QUERIES - CENTER) ** 2).sum(axis=1), rtol=1e-4, atol=1e-3
    )


@pytest.mark.parametrize("bits", [1, 5])
@pytest.mark.parametrize("factor", [-0.5, 1, 3])
def test_products_with_queries_along_the_center_are_exact(bits: int, factor: float) -> None:
    settings = {**new_settings(DIMENSION, bits), "query_estimator": "raw_query"}
    codes = rotated_codes(Metric.DOT, DIMENSION, settings)
    rows = codes.encode(VECTORS, np.broadcast_to(CENTER, VECTORS.shape))
    query = np.float32(factor) * CENTER[np.newaxis]
    found = codes.distances(codes.turned(query), rows, codes.turned(CENTER[np.newaxis])[0])
    np.testing.assert_allclose(found, distances(Metric.DOT, query, VECTORS), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("metric", [Metric.L2, Metric.DOT])
@pytest.mark.parametrize("bits", [1, 5])
def test_a_partition_may_have_no_rows(metric: Metric, bits: int) -> None:
    codes = new_codes(metric, DIMENSION, bits)
    rows = codes.encode(VECTORS[:0], VECTORS[:0])
    loaded = codes.loaded(codes.stored(rows), 0)
    assert codes.distances(QUERIES, loaded, CENTER).shape == (len(QUERIES), 0)


@pytest.mark.parametrize(
    "settings",
    [
        {"num_bits": 10, "query_estimator": "raw_query"},
        {"num_bits": 2},
        {"num_bits": 1, "query_estimator": "other"},
    ],
)
def test_unknown_layouts_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UnsupportedError, match="are not supported"):
        rotated_codes(Metric.L2, DIMENSION, {"fast_rotation_signs": bytes(32), **settings})


def test_a_stored_matrix_is_the_rotation() -> None:
    matrix = np.roll(np.eye(DIMENSION, dtype=np.float32), 1, axis=0)
    codes = rotated_codes(Metric.L2, DIMENSION, {"num_bits": 1}, matrix)
    assert np.array_equal(codes.turned(VECTORS), VECTORS @ matrix.T)
