"""Clustering of vectors by k-means."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from lancelake.index.vector.accelerator import accelerator_named
from lancelake.index.vector.faiss_library import faiss, use_one_thread
from lancelake.index.vector.metric import Matrix

# Official Lance takes 50 at most; further rounds move centers very little.
ROUNDS = 20
_SEED = 1234
# Partitions are clustered several times, and the best clustering is taken, if that takes no more
# multiplications.
_REPEATS = 3
_MOST_WORK = 1 << 35


def clustered(
    vectors: Matrix,
    count: int,
    rounds: int = ROUNDS,
    accelerator: str | None = None,
    start: int = 0,
    repeats: int = 1,
) -> tuple[npt.NDArray[np.float32], float]:
    """Return the centers of clusters, and the sum of the squared distances to them.

    The first centers are vectors that are chosen by `start`, so that results can be repeated. The
    best of several clusterings is returned; an accelerator makes one.
    """
    if accelerator is not None:
        return accelerator_named(accelerator).clustered(vectors, count, rounds, start)
    library = faiss()
    found = library.Kmeans(
        vectors.shape[1],
        count,
        niter=rounds,
        seed=_SEED + start,
        nredo=repeats,
        min_points_per_centroid=1,
        max_points_per_centroid=max(1, len(vectors)),
    )
    loss = found.train(np.ascontiguousarray(vectors, dtype=np.float32))
    return found.centroids, float(loss)


def partition_centers(
    vectors: Matrix, count: int, rounds: int = ROUNDS, accelerator: str | None = None
) -> tuple[npt.NDArray[np.float32], float]:
    """Return the centers of partitions, and the sum of the squared distances to them."""
    work = vectors.size * count * rounds
    repeats = max(1, min(_REPEATS, _MOST_WORK // max(1, work)))
    return clustered(vectors, count, rounds, accelerator, repeats=repeats)


def nearest_centers(
    vectors: Matrix, centers: Matrix, accelerator: str | None = None
) -> npt.NDArray[np.int64]:
    """Return the number of the center nearest to each vector."""
    if accelerator is not None:
        return accelerator_named(accelerator).nearest(vectors, centers)
    known = faiss().IndexFlatL2(centers.shape[1])
    known.add(centers)
    found: npt.NDArray[np.int64] = known.search(vectors, 1)[1][:, 0]
    return found


def train_codebook(
    vectors: Matrix, parts: int, bits: int, rounds: int = ROUNDS, accelerator: str | None = None
) -> npt.NDArray[np.float32]:
    """Return the centers of each part of vectors.

    Parts are clustered at once, each by one thread: more threads for small clusterings wait for
    each other most of the time. Each part starts with other rows: rows that are far from the same
    first centers in all parts would have poor codes in all of them.
    """
    split = vectors.reshape(len(vectors), parts, -1)

    def part(number: int) -> npt.NDArray[np.float32]:
        return clustered(split[:, number], 1 << bits, rounds, accelerator, number)[0]

    if accelerator is not None:
        return np.stack([part(number) for number in range(parts)])
    with ThreadPoolExecutor(os.cpu_count() or 1, initializer=use_one_thread) as pool:
        return np.stack(list(pool.map(part, range(parts))))
