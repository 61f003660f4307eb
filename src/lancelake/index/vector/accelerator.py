"""Clustering and assignment of vectors on a GPU, by PyTorch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.extras import optional
from lancelake.index.vector.metric import Matrix

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
        found: npt.NDArray[np.int64] = self._nearest(points, fixed)[0].cpu().numpy()
        return found

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
