"""Rotations of vectors before they become RQ codes."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Rotation = npt.NDArray[np.float32]
"""Orthogonal matrix; `vectors @ rotation` are the rotated vectors."""

_ROUNDS = 4


def arbitrary_signs(dimension: int) -> bytes:
    """Return the signs of a rotation, the same ones for each dimension."""
    return hashlib.shake_256(b"rotation").digest(_ROUNDS * _round_bytes(dimension))


@lru_cache(maxsize=8)
def rotation_of_signs(signs: bytes, dimension: int) -> Rotation:
    """Return the rotation that the signs of an index stand for.

    Each of four rounds flips signs and applies a Hadamard transform; if the dimension is no power
    of two, to its first and last values in turn, followed by sums and differences of both halves.
    """
    if len(signs) != _ROUNDS * _round_bytes(dimension) or dimension % 2:
        raise ValueError(f"{len(signs)} bytes are not the signs of {dimension} values")
    size = 1 << (dimension.bit_length() - 1)
    values = np.eye(dimension, dtype=np.float64)
    bits = np.unpackbits(np.frombuffer(signs, np.uint8).reshape(_ROUNDS, -1), 1, bitorder="little")
    for number, flipped in enumerate(bits[:, :dimension]):
        values = np.where(flipped, -values, values)
        start = 0 if number % 2 == 0 else dimension - size
        values[:, start : start + size] = _transformed(values[:, start : start + size])
        if size != dimension:
            first, second = np.split(values, 2, axis=1)
            values = np.concatenate([first + second, first - second], axis=1) / np.sqrt(2)
    found: Rotation = values.astype(np.float32)
    found.setflags(write=False)
    return found


def _round_bytes(dimension: int) -> int:
    return -(-dimension // 8)


def _transformed(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the Hadamard transform of each row, of the same length."""
    rows, size = values.shape
    half = 1
    while half < size:
        pairs = values.reshape(rows, -1, 2, half)
        first, second = pairs[:, :, 0], pairs[:, :, 1]
        values = np.stack([first + second, first - second], axis=2).reshape(rows, size)
        half *= 2
    found: npt.NDArray[np.float64] = values / np.sqrt(size)
    return found
