"""Rows and columns of vector, text and hybrid searches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.format.frozen import FrozenMap
from lancelake.scan.request import Nearest, SearchRequest, WeightedScore
from lancelake.scan.search.prepared import search, words_query
from tests.support.read_tables import open_source
from tests.support.search_tables import ROWS, article_vectors, write_articles

QUERY = article_vectors()[17:18]
NEAREST = Nearest(column="vector", queries=QUERY)
TEXT = words_query("harbour stone", ["text"])


@pytest.fixture(scope="module")
def articles(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    made = write_articles(tmp_path_factory.mktemp("search") / "articles.lance")
    made.delete("id = 30")
    return open_source(made.uri)


def hybrid(articles: Snapshot, **changes: object) -> pa.Table:
    options: dict[str, object] = {"nearest": NEAREST, "text": TEXT, "columns": ("id",), **changes}
    return search(articles, SearchRequest(**options))  # type: ignore[arg-type]


def test_a_hybrid_search_equals_the_fusion_of_two_searches(articles: Snapshot) -> None:
    near = search(articles, SearchRequest(nearest=NEAREST, k=100, columns=("id",))).to_pylist()
    matching = search(articles, SearchRequest(text=TEXT, k=100, columns=("id",))).to_pylist()
    expected: dict[int, float] = {}
    for found in (near, matching):
        for rank, row in enumerate(found, start=1):
            expected[row["id"]] = expected.get(row["id"], 0.0) + 1 / (60 + rank)
    best = sorted(expected, key=lambda number: (-expected[number], number))[:10]
    found = hybrid(articles)
    assert found["id"].to_pylist() == best
    np.testing.assert_allclose(found["_relevance_score"], [expected[i] for i in best], rtol=1e-6)
    distances = {row["id"]: row["_distance"] for row in near}
    scores = {row["id"]: row["_score"] for row in matching}
    assert found["_distance"].to_pylist() == [distances[i] for i in best]
    assert found["_score"].to_pylist() == [scores.get(i) for i in best]


def test_a_row_that_only_one_search_found_has_a_null(articles: Snapshot) -> None:
    found = hybrid(articles, candidates=10, filter="id in (17, 15)").to_pylist()
    rows = {row["id"]: row for row in found}
    assert rows[17]["_score"] is None
    assert rows[17]["_distance"] == 0.0
    assert rows[15]["_score"] > 0


def test_the_filter_is_applied_before_the_searches(articles: Snapshot) -> None:
    found = hybrid(articles, filter="topic = 'south'", k=20)
    assert found.num_rows == 20
    assert {number % 2 for number in found["id"].to_pylist()} == {1}


def test_a_filter_after_the_searches_may_leave_fewer_rows(articles: Snapshot) -> None:
    found = hybrid(articles, filter="id = 17", prefilter=False)
    assert found["id"].to_pylist() == [17]
    assert hybrid(articles, filter="id > 1000", prefilter=False).num_rows == 0


def test_a_weighted_search_follows_its_weight(articles: Snapshot) -> None:
    found = hybrid(articles, fusion=WeightedScore(vector_weight=1.0), k=5)
    near = search(articles, SearchRequest(nearest=NEAREST, k=5, columns=("id",)))
    assert found["id"].to_pylist() == near["id"].to_pylist()


def test_scores_follow_the_columns_unless_named(articles: Snapshot) -> None:
    scores = ["_distance", "_score", "_relevance_score"]
    every = ["id", "topic", "text", "vector"]
    assert hybrid(articles, columns=None).column_names == [*every, *scores]
    named = hybrid(articles, columns=("_relevance_score", "id"), with_row_id=True)
    assert named.column_names == ["_relevance_score", "id", "_distance", "_score", "_rowid"]


def test_expressions_may_use_the_scores(articles: Snapshot) -> None:
    found = hybrid(articles, columns=FrozenMap({"double": "_relevance_score * 2", "n": "id + 1"}))
    twice = np.asarray(found["_relevance_score"]) * 2
    np.testing.assert_allclose(found["double"], twice, rtol=1e-6)


def test_a_search_that_finds_nothing_has_the_same_columns(articles: Snapshot) -> None:
    found = hybrid(articles, filter="false")
    assert found.num_rows == 0
    assert found.schema == hybrid(articles).schema


def test_deleted_rows_are_not_found(articles: Snapshot) -> None:
    found = hybrid(articles, k=ROWS, candidates=ROWS)
    assert sorted(found["id"].to_pylist()) == [i for i in range(ROWS) if i != 30]


def test_a_single_search_has_only_its_own_score(articles: Snapshot) -> None:
    assert hybrid(articles, text=None).column_names == ["id", "_distance"]
    assert hybrid(articles, nearest=None).column_names == ["id", "_score"]


def test_several_query_vectors_are_refused(articles: Snapshot) -> None:
    several = Nearest(column="vector", queries=article_vectors()[:2], has_several=True)
    with pytest.raises(InvalidRequestError, match="one query vector, not several"):
        hybrid(articles, nearest=several)


def test_a_table_with_a_column_named_like_a_score_is_refused(tmp_path: Path) -> None:
    vector = pa.array([[0.0] * 4], pa.list_(pa.float32(), 4))
    rows = pa.table({"text": ["fox"], "vector": vector, "_relevance_score": [1.0]})
    made = lancelake.write_dataset(rows, str(tmp_path / "t.lance"))
    made.create_scalar_index("text", "INVERTED")
    with pytest.raises(InvalidRequestError, match="'_relevance_score', which the table has"):
        hybrid(open_source(made.uri), columns=None)
