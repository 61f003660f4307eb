"""Quantization of residuals to a few steps."""

from __future__ import annotations

import numpy as np
import pytest

from lancelake.index.vector.rotated_codes import nearest_steps

VECTORS = np.random.default_rng(8).standard_normal((50, 32)).astype(np.float32)


@pytest.mark.parametrize(("bits", "least"), [(1, 0.92), (2, 0.97), (4, 0.998), (8, 0.9999)])
def test_codes_have_a_small_angle_to_the_vectors(bits: int, least: float) -> None:
    steps = nearest_steps(VECTORS, bits).astype(np.float32)
    count = 1 << bits
    values = np.where(VECTORS >= 0, count, 0) + steps - (count - 0.5)
    lengths = np.linalg.norm(values, axis=1) * np.linalg.norm(VECTORS, axis=1)
    assert ((values * VECTORS).sum(axis=1) / lengths).mean() > least


def test_a_vector_of_zeros_has_no_steps() -> None:
    assert not nearest_steps(np.zeros((1, 4), dtype=np.float32), 3).any()
