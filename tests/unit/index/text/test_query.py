"""Queries refuse values that mean nothing."""

from __future__ import annotations

import math

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.index.text.text_query import Boost, Match

RED = Match(column="t", text="red")


@pytest.mark.parametrize("factor", [-1.0, -1e-9, math.nan, math.inf, 1e300])
def test_a_factor_of_scores_is_finite_and_not_negative(factor: float) -> None:
    with pytest.raises(InvalidRequestError, match="boost must be finite and not negative"):
        Match(column="t", text="red", boost=factor)
    with pytest.raises(InvalidRequestError, match="boost must be finite and not negative"):
        Boost(positive=RED, negative=RED, negative_boost=factor)


@pytest.mark.parametrize("factor", [0.0, 0.5, 3e38])
def test_other_factors_are_accepted(factor: float) -> None:
    assert Match(column="t", text="red", boost=factor).boost == factor
