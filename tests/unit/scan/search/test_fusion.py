"""Relevance and order of fused rows."""

from __future__ import annotations

import numpy as np
import pytest

from lancelake.errors import InvalidRequestError
from lancelake.scan.request import Fusion, ReciprocalRankFusion, WeightedScore, fusion_of
from lancelake.scan.search.prepared import FusedRows, fuse


def fused(
    fusion: Fusion, near: list[tuple[int, float]], matching: list[tuple[int, float]]
) -> FusedRows:
    return fuse(
        fusion,
        near=np.array([row for row, _ in near], dtype=np.uint64),
        distances=np.array([value for _, value in near], dtype=np.float32),
        matching=np.array([row for row, _ in matching], dtype=np.uint64),
        scores=np.array([value for _, value in matching], dtype=np.float32),
    )


def test_reciprocal_ranks_are_added() -> None:
    found = fused(ReciprocalRankFusion(), [(7, 0.1), (3, 0.2)], [(3, 9.0), (5, 8.0)])
    assert found.addresses.tolist() == [3, 7, 5]
    expected = [1 / 62 + 1 / 61, 1 / 61, 1 / 62]
    np.testing.assert_allclose(found.relevance, expected, rtol=1e-6)


def test_the_rank_constant_is_used() -> None:
    found = fused(ReciprocalRankFusion(constant=0), [(7, 0.1), (3, 0.2)], [])
    assert found.relevance.tolist() == [1.0, 0.5]


def test_rows_of_equal_relevance_are_in_the_order_of_their_addresses() -> None:
    found = fused(ReciprocalRankFusion(), [(9, 0.1)], [(2, 1.0)])
    assert found.addresses.tolist() == [2, 9]


def test_places_refer_to_the_searches_that_found_a_row() -> None:
    found = fused(ReciprocalRankFusion(), [(7, 0.1), (3, 0.2)], [(3, 9.0), (5, 8.0)])
    assert found.by_vector.tolist() == [1, 0, -1]
    assert found.by_text.tolist() == [0, -1, 1]


def test_weighted_scores_are_between_0_and_1() -> None:
    found = fused(WeightedScore(vector_weight=0.5), [(1, 2.0), (2, 3.0), (3, 4.0)], [(2, 8.0)])
    assert dict(zip(found.addresses.tolist(), found.relevance.tolist(), strict=True)) == {
        2: 0.75,
        1: 0.5,
        3: 0.0,
    }


@pytest.mark.parametrize(("weight", "first"), [(1.0, 1), (0.0, 2)])
def test_a_weight_of_one_search_only_gives_its_order(weight: float, first: int) -> None:
    found = fused(WeightedScore(vector_weight=weight), [(1, 1.0), (2, 2.0)], [(2, 8.0), (1, 4.0)])
    assert found.addresses.tolist()[0] == first


def test_equal_distances_are_equally_similar() -> None:
    found = fused(WeightedScore(vector_weight=1.0), [(1, 5.0), (2, 5.0)], [])
    assert found.relevance.tolist() == [1.0, 1.0]


def test_negative_text_scores_add_nothing() -> None:
    found = fused(WeightedScore(vector_weight=0.0), [], [(1, -1.0), (2, -2.0)])
    assert found.relevance.tolist() == [0.0, 0.0]


def test_infinite_distances_are_not_similar() -> None:
    found = fused(WeightedScore(vector_weight=1.0), [(1, 5.0), (2, np.inf)], [])
    assert found.relevance.tolist() == [1.0, 0.0]


def test_nothing_found_is_empty() -> None:
    for fusion in (ReciprocalRankFusion(), WeightedScore(vector_weight=0.3)):
        assert len(fused(fusion, [], []).addresses) == 0


def test_options_choose_the_fusion() -> None:
    assert fusion_of(None) is None
    assert fusion_of(None, 5) == ReciprocalRankFusion(constant=5)
    assert fusion_of(0.25) == WeightedScore(vector_weight=0.25)


@pytest.mark.parametrize(
    ("weight", "constant", "problem"),
    [
        (1.5, None, "between 0 and 1"),
        (float("nan"), None, "between 0 and 1"),
        (None, -1, "must not be negative"),
        (0.5, 60, "only one of them"),
    ],
)
def test_invalid_options_are_refused(
    weight: float | None, constant: int | None, problem: str
) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        fusion_of(weight, constant)
