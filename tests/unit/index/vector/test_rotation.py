"""Rotations keep lengths, and are those that the signs of an index stand for."""

from __future__ import annotations

import numpy as np
import pytest

from lancelake.index.vector.rotated_codes import arbitrary_signs, rotation_of_signs


@pytest.mark.parametrize("dimension", [8, 24, 64, 72])
def test_a_rotation_keeps_lengths(dimension: int) -> None:
    found = rotation_of_signs(arbitrary_signs(dimension), dimension)
    np.testing.assert_allclose(found @ found.T, np.eye(dimension), atol=1e-5)


def test_without_signs_four_transforms_of_a_power_of_two_cancel_out() -> None:
    np.testing.assert_allclose(rotation_of_signs(bytes(4), 8), np.eye(8), atol=1e-6)


def test_signs_of_another_dimension_are_refused() -> None:
    with pytest.raises(ValueError, match="are not the signs of 16 values"):
        rotation_of_signs(bytes(4), 16)
