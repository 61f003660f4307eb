"""All pairs of near vectors are found, each once, in the order of tiles."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from lancelake.index.vector.vectors import Metric, distances, near_pairs, normalized

Found = tuple[np.ndarray, np.ndarray, np.ndarray]


def listed(found: Iterable[Found]) -> list[tuple[int, int]]:
    return [pair for a, b, _ in found for pair in zip(a.tolist(), b.tolist(), strict=True)]


def values(metric: Metric, rows: int) -> np.ndarray:
    chance = np.random.default_rng(4)
    if metric is Metric.HAMMING:
        return chance.integers(0, 4, (rows, 8)).astype(np.uint8)
    found = (chance.integers(-2, 3, (rows, 6)) + 0.25).astype(np.float32)
    found[rows // 2 : rows // 2 + 1] = np.nan
    return found


@pytest.mark.parametrize(
    ("metric", "limit"),
    [(Metric.L2, 4.0), (Metric.COSINE, 0.1), (Metric.DOT, -8.0), (Metric.HAMMING, 5.0)],
)
@pytest.mark.parametrize("rows", [0, 1, 31, 150])
def test_pairs_are_those_of_all_distances(metric: Metric, limit: float, rows: int) -> None:
    vectors = values(metric, rows)
    shown = normalized(vectors) if metric is Metric.COSINE else vectors
    every = distances(metric, shown, shown) if rows else np.zeros((0, 0))
    expected = {(a, b) for a in range(rows) for b in range(a + 1, rows) if every[a, b] <= limit}
    # Codes of so many bytes leave 32 rows to a tile.
    found = list(near_pairs(metric, vectors, limit, 1 << 19))
    assert len(listed(found)) == len(set(listed(found)))
    assert set(listed(found)) == expected
    for firsts, seconds, near in found:
        assert near == pytest.approx(every[firsts, seconds], abs=1e-5)
    assert rows < 150 or len(expected) > 10


def test_pairs_are_in_the_order_of_tiles() -> None:
    vectors = np.zeros((70, 4), dtype=np.float32)
    found = listed(near_pairs(Metric.L2, vectors, 0.0, 1 << 19))
    order = [(a // 32, b // 32, a, b) for a, b in found]
    assert order == sorted(order)
    assert len(found) == 70 * 69 // 2


def test_equal_vectors_have_the_distance_zero() -> None:
    vectors = np.random.default_rng(1).standard_normal((1, 100)).astype(np.float32) * 1000
    twice = np.concatenate([vectors, vectors])
    for metric in (Metric.L2, Metric.COSINE):
        ((_, _, near),) = near_pairs(metric, twice, 0.0, 4)
        assert near.tolist() == [0.0]
