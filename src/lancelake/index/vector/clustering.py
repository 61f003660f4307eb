"""K-means of vectors, on the processor or a GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.extras import optional
from lancelake.index.vector.vectors import Matrix, faiss, one_thread
from lancelake.threads import Pool, usable_cores

_NAMES = re.compile(r"cuda(:\d+)?|mps")
# Distances of so many pairs of vector and center are held at once.
_PAIRS_AT_ONCE = 1 << 27
# A center that has lost its vectors moves beside the largest cluster, this far.
_APART = 1e-3
# A prime, so that starts differ for any number of vectors.
_NEXT_START = 7919


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A device of PyTorch."""

    torch: Any
    device: str

    def clustered(
        self, vectors: Matrix, count: int, rounds: int, start: int = 0
    ) -> tuple[npt.NDArray[np.float32], float]:
        """Return the centers of clusters, and the sum of the squared distances to them.

        The first centers are evenly spaced vectors, so that results can be repeated; those of
        another `start` are others.
        """
        torch = self.torch
        points = torch.from_numpy(np.ascontiguousarray(vectors, np.float32)).to(self.device)
        places = torch.linspace(0, len(points) - 1, count, device=self.device).long()
        places = (places + start * _NEXT_START) % len(points)
        centers, loss = points[places].clone(), float("inf")
        for _ in range(rounds):
            numbers, distances = self._nearest(points, centers)
            before, loss = loss, float(distances.sum())
            counts = torch.bincount(numbers, minlength=count)
            sums = torch.zeros_like(centers).index_add_(0, numbers, points)
            centers = sums / counts.clamp(min=1)[:, None]
            empty = torch.nonzero(counts == 0)[:, 0]
            if len(empty):
                largest = torch.argsort(counts, descending=True)[: len(empty)]
                moved = centers[largest] * _APART
                centers[empty] = centers[largest] + moved
                centers[largest] -= moved
            elif loss >= before:
                break
        return centers.cpu().numpy(), float(self._nearest(points, centers)[1].sum())

    def nearest(self, vectors: Matrix, centers: Matrix) -> npt.NDArray[np.int64]:
        """Return the number of the center nearest to each vector."""
        torch = self.torch
        places = [np.ascontiguousarray(each, np.float32) for each in (vectors, centers)]
        points, fixed = (torch.from_numpy(each).to(self.device) for each in places)
        numbers: npt.NDArray[np.int64] = self._nearest(points, fixed)[0].cpu().numpy()
        return numbers

    def _nearest(self, points: Any, centers: Any) -> tuple[Any, Any]:
        """Return the nearest center of each point, and the squared distance to it."""
        torch = self.torch
        squares = (centers * centers).sum(1)
        step = max(1, _PAIRS_AT_ONCE // len(centers))
        numbers, distances = [], []
        for part in torch.split(points, step):
            best = torch.addmm(squares[None], part, centers.T, alpha=-2).min(1)
            numbers.append(best.indices)
            distances.append((best.values + (part * part).sum(1)).clamp(min=0))
        return torch.cat(numbers), torch.cat(distances)


def accelerator_named(name: object) -> Accelerator:
    """Return a device: `cuda`, `cuda:1`, ... or `mps`; raise UnsupportedError without it."""
    text = str(name)
    if not _NAMES.fullmatch(text):
        raise InvalidRequestError(f"accelerator must be 'cuda' or 'mps', not {text!r}")
    torch = optional("torch", extra="torch", purpose=f"building an index on accelerator {text!r}")
    if not _is_available(torch, text):
        raise UnsupportedError(
            f"accelerator {text!r} is not available: PyTorch finds no such device",
            action="Omit accelerator to build on the CPU.",
        )
    return Accelerator(torch, text)


def _is_available(torch: Any, name: str) -> bool:
    """Whether PyTorch finds a device, by kind and number."""
    kind, _, number = name.partition(":")
    if kind == "mps":
        return bool(torch.backends.mps.is_available())
    return bool(torch.cuda.is_available()) and int(number or 0) < torch.cuda.device_count()


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
    clustering = library.Kmeans(
        vectors.shape[1],
        count,
        niter=rounds,
        seed=_SEED + start,
        nredo=repeats,
        min_points_per_centroid=1,
        max_points_per_centroid=max(1, len(vectors)),
    )
    loss = clustering.train(np.ascontiguousarray(vectors, dtype=np.float32))
    return clustering.centroids, float(loss)


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
    index = faiss().IndexFlatL2(centers.shape[1])
    index.add(centers)
    numbers: npt.NDArray[np.int64] = index.search(vectors, 1)[1][:, 0]
    return numbers


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
    with Pool(usable_cores(), within=one_thread) as pool:
        return np.stack(list(pool.map(part, range(parts))))
