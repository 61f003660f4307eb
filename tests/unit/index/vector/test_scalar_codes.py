"""SQ codes: codes of other bounds."""

from __future__ import annotations

import numpy as np
import pytest

from lancelake.index.vector.codes import ScalarCodes, spanning_codes
from lancelake.index.vector.vectors import Metric

DIMENSION = 8
VALUES = np.random.default_rng(3).uniform(-1, 1, (50, DIMENSION)).astype(np.float32)


def codes(lower: float, upper: float) -> ScalarCodes:
    return ScalarCodes(dimension=DIMENSION, metric=Metric.L2, lower=lower, upper=upper)


def test_spanning_codes_have_the_outer_bounds() -> None:
    found = spanning_codes([codes(-1, 1), codes(0, 4), codes(-2, 0)])
    assert (found.lower, found.upper) == (-2, 4)


@pytest.mark.parametrize(("lower", "upper"), [(-1, 1), (-3, 2), (-20, 40)])
def test_translated_codes_mean_the_same_values(lower: float, upper: float) -> None:
    source, target = codes(-1, 1), codes(lower, upper)
    translated = target.translated(source.encode(VALUES, VALUES), source)
    step = (upper - lower) / 255
    assert np.abs(target.decode(translated) - VALUES).max() <= step / 2 + 1 / 255 + 1e-5


def test_codes_of_one_value_are_translated() -> None:
    source, target = codes(0.5, 0.5), codes(0, 1)
    translated = target.translated(np.zeros((1, DIMENSION), dtype=np.uint8), source)
    np.testing.assert_allclose(target.decode(translated), 0.5, atol=1 / 255)
