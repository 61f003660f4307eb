"""Search requests: defaults of columns and counts, and refused requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lancelake.errors import InvalidRequestError
from lancelake.index.text.text_query import Match, MultiMatch, Phrase
from lancelake.scan.request import Nearest, ReciprocalRankFusion, SearchRequest
from lancelake.scan.search.prepared import vector_column, words_query
from tests.support.read_tables import open_source
from tests.support.search_tables import write_articles

QUERY = Nearest(column="v", queries=np.zeros((1, 2), dtype=np.float32))


def test_words_are_matched_in_all_indexed_columns() -> None:
    assert words_query("red fox") == Match(column=None, text="red fox")


def test_words_are_matched_in_the_given_columns() -> None:
    parts = (Match(column="a", text="fox"), Match(column="b", text="fox"))
    assert words_query("fox", ["a"]) == parts[0]
    assert words_query("fox", ["a", "b"]) == MultiMatch(parts=parts)


def test_words_in_quotes_are_a_phrase() -> None:
    assert words_query('"red fox"') == Phrase(column=None, text="red fox")
    assert words_query('"red fox"', ["a"]) == Phrase(column="a", text="red fox")


def test_a_hybrid_search_fuses_more_rows_than_it_returns() -> None:
    text = words_query("fox")
    assert SearchRequest(nearest=QUERY, text=text).rows_per_search == 100
    assert SearchRequest(nearest=QUERY, text=text, k=80).rows_per_search == 160
    assert SearchRequest(nearest=QUERY, text=text, candidates=20).rows_per_search == 20
    assert SearchRequest(text=text, k=7).rows_per_search == 7


def test_a_search_without_a_query_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="needs a query vector, a text, or both"):
        SearchRequest().limited()


def test_no_rows_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="k must be > 0"):
        SearchRequest(nearest=QUERY, k=0)


def test_fewer_candidates_than_rows_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="must not be fewer than k"):
        SearchRequest(nearest=QUERY, text=words_query("fox"), candidates=3)


@pytest.mark.parametrize("option", [{"candidates": 20}, {"fusion": ReciprocalRankFusion()}])
def test_a_single_search_is_not_fused(option: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="specify both queries"):
        SearchRequest(nearest=QUERY, **option)


def test_the_only_vector_column_is_searched(tmp_path: Path) -> None:
    source = open_source(write_articles(tmp_path / "t.lance").uri)
    assert vector_column(source) == "vector"
    assert vector_column(source, "other") == "other"


def test_one_of_several_vector_columns_must_be_named(tmp_path: Path) -> None:
    import lancelake

    pair = pa.array([[0.0, 1.0]], pa.list_(pa.float32(), 2))
    made = lancelake.write_dataset(pa.table({"a": pair, "b": pair}), str(tmp_path / "t.lance"))
    with pytest.raises(InvalidRequestError, match="several vector columns; name one of: a, b"):
        vector_column(open_source(made.uri))


def test_a_table_without_vectors_is_refused(tmp_path: Path) -> None:
    import lancelake

    made = lancelake.write_dataset(pa.table({"a": [1]}), str(tmp_path / "t.lance"))
    with pytest.raises(InvalidRequestError, match="no vector column"):
        vector_column(open_source(made.uri))
