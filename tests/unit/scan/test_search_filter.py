"""A search that filters another one, through the Python face."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.dataset import VectorSearchQuery
from lancelake.pylance.query import MatchQuery, PhraseQuery

ROWS = 300
NEAREST = {"column": "v", "q": [300.0] * 4, "k": 5}
WORD = MatchQuery("red", "t")


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def ds(request: pytest.FixtureRequest, tmp_table: str) -> lance.LanceDataset:
    """Return a table whose rows above 255, but the last two, lack the word."""
    ids = range(1, ROWS + 1)
    texts = [f"blue {i}" if 255 < i < ROWS - 1 else f"red {i}" for i in ids]
    vectors = pa.array([[float(i)] * 4 for i in ids], pa.list_(pa.float32(), 4))
    table = pa.table({"id": ids, "v": vectors, "t": texts, "third": [i % 3 for i in ids]})
    made = lance.write_dataset(
        table, tmp_table, max_rows_per_file=100, enable_stable_row_ids=request.param
    )
    made.delete("id = 250")
    made.create_scalar_index("t", "INVERTED", with_position=True)
    return made


def ids(ds: lance.LanceDataset, **options: Any) -> list[int]:
    found: list[int] = ds.scanner(**options).to_table()["id"].to_pylist()
    return found


def test_a_text_limits_the_rows_of_a_vector_search(ds: lance.LanceDataset) -> None:
    assert ids(ds, nearest=NEAREST, filter=WORD, prefilter=True) == [300, 299, 255, 254, 253]


def test_a_text_filters_the_result_of_a_vector_search(ds: lance.LanceDataset) -> None:
    assert ids(ds, nearest=NEAREST, filter=WORD) == [300, 299]


@pytest.mark.parametrize(
    ("prefilter", "expected"), [(True, [300, 255, 252, 249, 246]), (False, [300])]
)
def test_a_condition_applies_too(
    ds: lance.LanceDataset, prefilter: bool, expected: list[int]
) -> None:
    both = {"expr_filter": "third = 0", "search_filter": WORD}
    assert ids(ds, nearest=NEAREST, filter=both, prefilter=prefilter) == expected


def test_nearest_rows_limit_a_text_search(ds: lance.LanceDataset) -> None:
    near = VectorSearchQuery("v", [10.0] * 4, k=3)
    assert sorted(ids(ds, full_text_query="red", filter=near, prefilter=True)) == [9, 10, 11]


def test_the_nearest_of_the_rows_of_a_text_search_are_kept(ds: lance.LanceDataset) -> None:
    near = VectorSearchQuery("v", [280.0] * 4, k=2)
    assert sorted(ids(ds, full_text_query="red", filter=near, limit=ROWS)) == [299, 300]


def test_a_phrase_does_not_filter_a_result(ds: lance.LanceDataset) -> None:
    scan = ds.scanner(nearest=NEAREST, filter=PhraseQuery("red 300", "t"))
    with pytest.raises(ValueError, match="phrase"):
        scan.to_table()


def test_a_scan_without_a_search_has_no_search_filter(ds: lance.LanceDataset) -> None:
    with pytest.raises(ValueError, match="only be used with"):
        ds.scanner(filter=WORD)


def test_two_searches_of_one_kind_are_refused(ds: lance.LanceDataset) -> None:
    with pytest.raises(ValueError, match="can't be used with fts"):
        ds.scanner(full_text_query="red", filter=WORD)


def test_a_plan_shows_both_searches(ds: lance.LanceDataset) -> None:
    shown = ds.scanner(nearest=NEAREST, filter=WORD, prefilter=True).explain_plan()
    assert shown.index("KNNVectorDistance") < shown.index("MatchQuery")
