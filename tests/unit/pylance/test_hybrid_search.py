"""`LanceDataset.search`: arguments and results."""

from __future__ import annotations

import pytest

import lancelake
from lancelake.errors import InvalidRequestError
from lancelake.pylance.query import PhraseQuery
from tests.support.search_tables import article_vectors, write_articles

QUERY = article_vectors()[17].tolist()


@pytest.fixture(scope="module")
def articles(tmp_path_factory: pytest.TempPathFactory) -> lancelake.LanceDataset:
    return write_articles(tmp_path_factory.mktemp("search") / "articles.lance")


def test_a_text_search_equals_a_scan(articles: lancelake.LanceDataset) -> None:
    expected = articles.to_table(full_text_query="stone", limit=5)
    assert articles.search("stone", k=5) == expected


def test_a_vector_search_equals_a_scan(articles: lancelake.LanceDataset) -> None:
    nearest = {"column": "vector", "q": QUERY, "metric": "cosine"}
    expected = articles.to_table(nearest={**nearest, "k": 5})
    assert articles.search(nearest=nearest, k=5) == expected


def test_the_only_vector_column_need_not_be_named(articles: lancelake.LanceDataset) -> None:
    named = articles.search("stone", {"column": "vector", "q": QUERY})
    assert articles.search("stone", {"q": QUERY}) == named


def test_queries_are_accepted_as_values(articles: lancelake.LanceDataset) -> None:
    query = {"query": "stone", "columns": ["text"]}
    assert articles.search(query) == articles.search("stone")
    assert articles.search(PhraseQuery("fox harbour", "text"), k=3).num_rows == 3


def test_both_queries_are_fused(articles: lancelake.LanceDataset) -> None:
    found = articles.search("stone", {"q": QUERY}, columns=["id"], filter="id < 40", k=4)
    assert found.column_names == ["id", "_distance", "_score", "_relevance_score"]
    assert found.num_rows == 4


def test_the_weight_changes_the_order(articles: lancelake.LanceDataset) -> None:
    first = [
        articles.search("stone", {"q": QUERY}, columns=["id"], k=1, vector_weight=weight)["id"]
        for weight in (0.0, 1.0)
    ]
    assert [ids.to_pylist() for ids in first] == [[7], [17]]


def test_the_number_of_rows_is_given_once(articles: lancelake.LanceDataset) -> None:
    with pytest.raises(InvalidRequestError, match="k is an argument of the search"):
        articles.search(nearest={"q": QUERY, "k": 3})
