"""Clustering of vectors, and of their parts."""

from __future__ import annotations

import numpy as np

from lancelake.index.vector.clustering import clustered, partition_centers, train_codebook

CHANCE = np.random.default_rng(3)


def test_clusterings_can_be_repeated() -> None:
    vectors = CHANCE.standard_normal((500, 4)).astype(np.float32)
    first, loss = clustered(vectors, 8)
    again, same = clustered(vectors, 8)
    assert np.array_equal(first, again)
    assert loss == same


def test_parts_of_vectors_start_with_different_rows() -> None:
    part = CHANCE.standard_normal((500, 4)).astype(np.float32)
    book = train_codebook(np.tile(part, 3), 3, 4)
    assert not any(np.array_equal(book[a], book[b]) for a, b in ((0, 1), (0, 2), (1, 2)))


def test_codes_of_clustered_vectors_do_not_fail_for_the_same_rows_in_all_parts() -> None:
    centers = 4 * CHANCE.standard_normal((40, 32))
    owners = CHANCE.integers(0, 40, 4000)
    vectors = (centers[owners] + CHANCE.standard_normal((4000, 32))).astype(np.float32)
    book = train_codebook(vectors, 8, 6)
    split = vectors.reshape(4000, 8, 4)
    far = [
        ((split[:, part, np.newaxis] - book[part]) ** 2).sum(axis=2).min(axis=1)
        for part in range(8)
    ]
    by_cluster = np.array([[errors[owners == i].mean() for i in range(40)] for errors in far])
    related = np.corrcoef(by_cluster)[np.triu_indices(8, 1)]
    assert related.mean() < 0.1


def test_partitions_are_the_best_of_several_clusterings() -> None:
    compared = []
    for _ in range(6):
        centers = 9 * CHANCE.standard_normal((12, 4))
        vectors = centers[np.arange(600) % 12] + CHANCE.standard_normal((600, 4))
        matrix = vectors.astype(np.float32)
        compared.append((partition_centers(matrix, 12)[1], clustered(matrix, 12)[1]))
    assert all(best <= once * 1.0001 for best, once in compared)
    assert any(best < once * 0.95 for best, once in compared)
