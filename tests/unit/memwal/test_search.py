from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import UnsupportedError
from lancelake.index.text.text_query import Match
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.search import ViewSearch
from lancelake.memwal.setup import bucketed, initialize
from lancelake.memwal.view import Freshness, open_view
from lancelake.scan.request import Nearest, SearchRequest
from lancelake.scan.search.prepared import search
from tests.support.memwal_tables import KEY, keys, newest, writer

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata=KEY),
        pa.field("text", pa.utf8()),
        pa.field("vector", pa.list_(pa.float32(), 2)),
    ]
)


def rows(*given: tuple[int, str, float]) -> pa.Table:
    ids = [key for key, _, _ in given]
    texts = [text for _, text, _ in given]
    vectors = pa.array([[place, 0.0] for *_, place in given], SCHEMA.field("vector").type)
    return pa.table([ids, texts, vectors], schema=SCHEMA)


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def uri(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return a table of which rows are replaced, deleted and added in a generation and a tail."""
    uri = tmp_path / "t"
    first = rows(*((n, f"word base{n}", float(n)) for n in range(20)))
    ds = lance.write_dataset(first, uri, enable_stable_row_ids=request.param)
    ds.create_scalar_index("text", "INVERTED")
    base = newest(uri)
    initialize(base, bucketed(base, "id", 1))
    mine = writer(newest(uri))
    mine.put(rows((3, "other", 100.0), (50, "word flushed", 3.4)))
    mine.flush()
    mine.put(rows((51, "word tail", 3.1)))
    mine.delete(keys(4))
    return uri


def nearest(uri: Path, freshness: Freshness, filter: str | None = None, k: int = 3) -> list[int]:
    query = Nearest(column="vector", queries=np.array([[3.0, 0.0]], dtype=np.float32), k=k)
    found = ViewSearch(view=open_view(newest(uri), freshness), filter=filter).nearest(query)
    assert found.column("_distance").to_pylist() == sorted(found.column("_distance").to_pylist())
    return [int(n) for n in found.column("id").to_pylist()]


def matching(uri: Path, freshness: Freshness, text: str, filter: str | None = None) -> pa.Table:
    query = Match(column="text", text=text)
    return ViewSearch(view=open_view(newest(uri), freshness), filter=filter).text(query)


def test_the_nearest_rows_of_each_freshness(uri: Path) -> None:
    assert nearest(uri, Freshness.BASE) == [3, 2, 4]
    assert nearest(uri, Freshness.FLUSHED) == [50, 2, 4]
    assert nearest(uri, Freshness.DURABLE) == [51, 50, 2]


def test_only_matching_rows_are_near(uri: Path) -> None:
    assert nearest(uri, Freshness.DURABLE, "id < 50") == [2, 1, 5]


def test_searches_are_those_of_the_merged_table(uri: Path) -> None:
    view = matching(uri, Freshness.DURABLE, "word")
    near = nearest(uri, Freshness.DURABLE, k=30)
    with writer(newest(uri)):
        pass
    merge_generations(newest(uri))
    merged = lance.dataset(uri).to_table(full_text_query="word")
    assert sorted(view.column("id").to_pylist()) == sorted(merged.column("id").to_pylist())
    found = lance.dataset(uri).to_table(
        nearest={"column": "vector", "q": [3.0, 0.0], "k": 30, "use_index": False}
    )
    assert near == found.column("id").to_pylist()


@pytest.mark.parametrize(
    ("freshness", "expected"),
    [(Freshness.BASE, []), (Freshness.FLUSHED, [50]), (Freshness.DURABLE, [50])],
)
def test_texts_that_are_not_merged_are_found(
    uri: Path, freshness: Freshness, expected: list[int]
) -> None:
    assert matching(uri, freshness, "flushed").column("id").to_pylist() == expected


def test_replaced_and_deleted_texts_are_not_found(uri: Path) -> None:
    found = matching(uri, Freshness.DURABLE, "base3 base4 base5")
    assert found.column("id").to_pylist() == [5]


def test_only_matching_texts_are_searched(uri: Path) -> None:
    found = matching(uri, Freshness.DURABLE, "word", "id > 17")
    assert sorted(found.column("id").to_pylist()) == [18, 19, 50, 51]


def test_each_of_several_queries_has_its_rows(uri: Path) -> None:
    places = np.array([[3.0, 0.0], [19.0, 0.0], [99.0, 0.0]], dtype=np.float32)
    query = Nearest(column="vector", queries=places, has_several=True, k=2)
    view = open_view(newest(uri), Freshness.DURABLE)
    found = ViewSearch(view=view, columns=("id",)).nearest(query)
    pairs = zip(found["query_index"].to_pylist(), found["id"].to_pylist(), strict=True)
    assert list(pairs) == [(0, 51), (0, 50), (1, 19), (1, 18), (2, 3), (2, 19)]


def hybrid(**options: Any) -> SearchRequest:
    near = Nearest(column="vector", queries=np.array([[3.0, 0.0]], dtype=np.float32))
    return SearchRequest(nearest=near, text=Match(column="text", text="tail"), k=3, **options)


def test_both_searches_are_fused_as_in_the_merged_table(uri: Path) -> None:
    view = open_view(newest(uri), Freshness.DURABLE)
    found = ViewSearch(view=view, columns=("id",)).search(hybrid())
    assert found.column_names == ["id", "_distance", "_score", "_relevance_score"]
    with writer(newest(uri)):
        pass
    merge_generations(newest(uri))
    merged = search(newest(uri), replace(hybrid(), columns=("id",)))
    assert found["id"].to_pylist()[0] == 51
    assert set(found["id"].to_pylist()) == set(merged["id"].to_pylist())
    assert found["_relevance_score"].to_pylist() == merged["_relevance_score"].to_pylist()


@pytest.mark.parametrize("options", [{"with_row_id": True}, {"filter": "1=1", "prefilter": False}])
def test_what_rows_in_the_log_cannot_do_is_refused(uri: Path, options: dict[str, Any]) -> None:
    view = open_view(newest(uri), Freshness.DURABLE)
    with pytest.raises(UnsupportedError, match="not merged"):
        ViewSearch(view=view).search(hybrid(**options))


def test_chosen_columns_are_returned(uri: Path) -> None:
    view = open_view(newest(uri), Freshness.DURABLE)
    found = ViewSearch(view=view, columns=("text",)).text(Match(column="text", text="tail"))
    assert found.drop_columns(["_score"]).to_pylist() == [{"text": "word tail"}]
