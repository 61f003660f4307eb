"""Full text search of a table: what is found, in which order, after which changes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import DamagedIndexError, UnsupportedError
from lancelake.pylance.query import (
    BooleanQuery,
    BoostQuery,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)
from tests.support.text_tables import table_of, word

TEXTS = [
    "the quick brown fox",
    "quick quick dog runs over lazy fox",
    "lazy dogs sleep",
    "fox fox fox brown",
    "brown quick fox the dog",
    None,
    "",
]


@pytest.fixture
def ds(tmp_table: str) -> lance.LanceDataset:
    rows = pa.table({"id": range(len(TEXTS)), "t": TEXTS, "u": list(reversed(TEXTS))})
    table = lance.write_dataset(rows, tmp_table)
    table.create_scalar_index("t", "INVERTED", with_position=True)
    return table


def ids(table: lance.LanceDataset, query: Any, **options: Any) -> list[int]:
    found: list[int] = table.to_table(["id"], full_text_query=query, **options)["id"].to_pylist()
    return found


def scores(table: lance.LanceDataset, query: Any) -> dict[int, float]:
    found = table.to_table(["id", "_score"], full_text_query=query)
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("fox", [3, 0, 4, 1]),
        ('"quick fox"', [4]),
        ({"query": "sleep", "columns": ["t"]}, [2]),
        (MatchQuery("quick dog", "t", operator=FullTextOperator.AND), [1, 4]),
        (MatchQuery("quick absent", "t", operator=FullTextOperator.AND), []),
        (MatchQuery("quik", "t", fuzziness=1), [1, 0, 4]),
        (MatchQuery("sleap", "t", fuzziness=None), [2]),
        (PhraseQuery("quick fox", "t"), [4]),
        (PhraseQuery("quick fox", "t", slop=1), [0, 4]),
        (PhraseQuery("fox the dog", "t"), [4]),
        (BoostQuery(MatchQuery("fox", "t"), MatchQuery("dog", "t")), [3, 0, 4, 1]),
        (MatchQuery("lazy", "t") & MatchQuery("fox", "t"), [1]),
        (MatchQuery("sleep", "t") | MatchQuery("runs", "t"), [2, 1]),
        (
            BooleanQuery(
                [(Occur.MUST, MatchQuery("fox", "t")), (Occur.MUST_NOT, MatchQuery("dog", "t"))]
            ),
            [3, 0],
        ),
        ("the", []),
        ("", []),
    ],
)
def test_queries_find_rows_by_descending_score(
    ds: lance.LanceDataset, query: Any, expected: list[int]
) -> None:
    assert ids(ds, query) == expected


def test_scores_are_a_column_before_row_ids(ds: lance.LanceDataset) -> None:
    found = ds.to_table(["id"], full_text_query="fox", with_row_id=True, with_row_address=True)
    assert found.schema.names == ["id", "_score", "_rowid", "_rowaddr"]
    scores = found["_score"].to_pylist()
    assert scores == sorted(scores, reverse=True)


def test_the_score_is_where_it_was_asked_for(ds: lance.LanceDataset) -> None:
    assert ds.to_table(["_score", "id"], full_text_query="fox").schema.names == ["_score", "id"]
    assert ds.to_table(["_score"], full_text_query="fox").num_rows == 4


def test_the_score_is_left_out_on_request(ds: lance.LanceDataset) -> None:
    found = ds.to_table(["id"], full_text_query="fox", disable_scoring_autoprojection=True)
    assert found.schema.names == ["id"]
    assert found["id"].to_pylist() == [3, 0, 4, 1]


def test_limit_and_offset_count_ranked_rows(ds: lance.LanceDataset) -> None:
    assert ids(ds, "fox", limit=2, offset=1) == [0, 4]
    assert ids(ds, "fox", limit=0) == []


def test_a_filter_before_the_search_fills_the_limit(ds: lance.LanceDataset) -> None:
    assert ids(ds, "fox", filter="id != 3", limit=2, prefilter=True) == [0, 4]


def test_a_filter_after_the_search_may_not_fill_the_limit(ds: lance.LanceDataset) -> None:
    assert ids(ds, "fox", filter="id != 3", limit=2, prefilter=False) == [0]


def test_a_scanner_counts_and_explains_a_search(ds: lance.LanceDataset) -> None:
    scanner = ds.scanner(full_text_query="fox", limit=3)
    assert scanner.count_rows() == 3
    assert "MatchQuery: column=t, query=[fox]" in scanner.explain_plan()
    assert scanner.projected_schema.names == ["id", "t", "u", "_score"]
    assert [batch.num_rows for batch in ds.to_batches(full_text_query="fox", batch_size=3)] == [
        3,
        1,
    ]


def test_rows_of_no_column_are_counted(ds: lance.LanceDataset) -> None:
    assert ds.count_rows(full_text_query="fox") == 4


def test_several_columns_give_the_best_score(ds: lance.LanceDataset) -> None:
    ds.create_scalar_index("u", "FTS")
    assert ids(ds, MultiMatchQuery("sleep", ["t", "u"])) == [2, 4]
    assert ids(ds, MultiMatchQuery("sleep", ["t", "u"], boosts=[1.0, 2.0])) == [4, 2]
    assert sorted(ids(ds, "sleep")) == [2, 4]


def test_rows_that_no_index_covers_are_searched(ds: lance.LanceDataset) -> None:
    more = pa.table({"id": [7, 8], "t": ["a fox and a zebra", None], "u": ["", ""]})
    added = lance.write_dataset(more, ds.uri, mode="append")
    assert sorted(ids(added, "fox")) == [0, 1, 3, 4, 7]
    assert ids(added, PhraseQuery("fox zebra", "t", slop=2)) == [7]
    assert ids(added, MatchQuery("zebre", "t", fuzziness=1)) == [7]
    assert ids(added, "zebra", fast_search=True) == []


def test_a_column_without_an_index_is_searched(ds: lance.LanceDataset) -> None:
    assert sorted(ids(ds, MatchQuery("sleep", "u"))) == [4]
    assert ids(ds, PhraseQuery("lazy dogs", "u")) == [4]


def test_deleted_and_updated_rows_are_not_found(ds: lance.LanceDataset) -> None:
    ds.delete("id = 3")
    ds.update({"t": "'a wolf'"}, where="id = 0")
    assert sorted(ids(ds, "fox")) == [1, 4]
    assert ids(ds, "wolf") == [0]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("deferred", [False, True], ids=["remapped", "moves recorded"])
def test_the_same_rows_are_found_after_maintenance(
    tmp_table: str, stable: bool, deferred: bool
) -> None:
    rows = table_of(900)
    table = lance.write_dataset(
        rows, tmp_table, max_rows_per_file=300, enable_stable_row_ids=stable
    )
    table.create_scalar_index("t", "INVERTED", with_position=True)
    table.delete("id % 7 = 1")
    table = lance.write_dataset(table_of(200, 9, first=900), tmp_table, mode="append")
    table.delete("id % 10 = 5")
    chance = random.Random(1)
    queries: list[FullTextQuery] = [MatchQuery(word(chance), "t") for _ in range(20)]
    queries += [PhraseQuery(f"word{i} word{i + 1}", "t") for i in range(3)]
    before = [sorted(ids(table, query)) for query in queries]
    assert sum(map(len, before)) > 500

    table.optimize.compact_files(defer_index_remap=deferred)
    table = lance.dataset(tmp_table)
    assert [sorted(ids(table, query)) for query in queries] == before

    table.optimize.optimize_indices()
    table = lance.dataset(tmp_table)
    assert [sorted(ids(table, query, fast_search=True)) for query in queries] == before
    assert table.stats.index_stats("t_idx")["num_unindexed_rows"] == 0


def test_segments_are_searched_together(tmp_table: str) -> None:
    table = lance.write_dataset(table_of(300), tmp_table)
    table.create_scalar_index("t", "INVERTED")
    table = lance.write_dataset(table_of(300, 5, first=300), tmp_table, mode="append")
    table.optimize.optimize_indices(num_indices_to_merge=0)
    table = lance.dataset(tmp_table)
    assert table.stats.index_stats("t_idx")["num_indices"] == 2
    parted = scores(table, "word1 word3")
    table.optimize.optimize_indices()
    assert scores(lance.dataset(tmp_table), "word1 word3") == pytest.approx(parted)


def test_statistics_show_parameters_terms_and_documents(ds: lance.LanceDataset) -> None:
    (shown,) = ds.stats.index_stats("t_idx")["indices"]
    assert (shown["num_docs"], shown["num_tokens"]) == (5, 7)
    assert shown["params"]["with_position"] is True


def test_an_index_of_many_partitions_is_searched(
    tmp_table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lance.write_dataset(table_of(600), tmp_table)
    table.create_scalar_index("t", "INVERTED", name="whole", with_position=True)
    expected = scores(table, "word1 word2")
    phrase = ids(table, PhraseQuery("word0 word1", "t"))
    monkeypatch.setattr("lancelake.index.text.build._TEXTS_AT_ONCE", 50)
    monkeypatch.setattr("lancelake.index.text.kind.OCCURRENCES_AT_ONCE", 500)
    table.create_scalar_index("t", "INVERTED", name="whole", with_position=True)
    assert len(list(Path(tmp_table).glob("_indices/*/part_3_docs.lance"))) == 1
    assert scores(table, "word1 word2") == pytest.approx(expected)
    assert ids(table, PhraseQuery("word0 word1", "t")) == phrase


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        (MatchQuery("fox", "absent"), KeyError, "absent"),
        (MatchQuery("fox", "id"), TypeError, "id"),
        ({"text": "fox"}, ValueError, "keys"),
        (5, TypeError, "full text query"),
    ],
)
def test_wrong_queries_are_refused(
    ds: lance.LanceDataset, query: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ds.to_table(full_text_query=query)


def test_a_text_needs_an_indexed_column(tmp_table: str) -> None:
    table = lance.write_dataset(pa.table({"t": ["fox"]}), tmp_table)
    with pytest.raises(ValueError, match="INVERTED index"):
        table.to_table(full_text_query="fox")


def test_a_phrase_needs_positions(tmp_table: str) -> None:
    table = lance.write_dataset(pa.table({"t": ["quick fox"]}), tmp_table)
    table.create_scalar_index("t", "INVERTED")
    for text in ("quick fox", "fox", "absent words", "the"):
        with pytest.raises(ValueError, match="with_position"):
            table.to_table(full_text_query=PhraseQuery(text, "t"))


def test_deleted_rows_are_not_searched(ds: lance.LanceDataset) -> None:
    with pytest.raises(UnsupportedError):
        ds.to_table(full_text_query="fox", with_row_id=True, include_deleted_rows=True)


def test_rows_found_can_be_sorted_by_a_column(ds: lance.LanceDataset) -> None:
    found = ids(ds, "quick fox dog")
    assert ids(ds, "quick fox dog", order_by=["id"]) == sorted(found)
    assert found != sorted(found)


def test_filters_and_columns_may_use_the_score(ds: lance.LanceDataset) -> None:
    known = scores(ds, "quick fox dog")
    bound = sorted(known.values())[len(known) // 2]
    kept = [i for i, score in known.items() if score > bound]
    assert ids(ds, "quick fox dog", filter=f"_score > {bound}") == kept
    twice = ds.to_table({"id": "id", "twice": "_score * 2"}, full_text_query="quick fox dog")
    assert twice["twice"].to_pylist() == pytest.approx(
        [2 * known[i] for i in twice["id"].to_pylist()]
    )


@pytest.mark.parametrize("query", [[], [(Occur.MUST_NOT, MatchQuery("x", "t"))]])
def test_a_boolean_query_needs_something_to_find(query: list[Any]) -> None:
    with pytest.raises(ValueError, match="should/must"):
        BooleanQuery(query)


@pytest.mark.parametrize("part", ["metadata", "tokens", "docs", "invert"])
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_damaged_file_is_reported_with_its_index(
    ds: lance.LanceDataset, part: str, damage: str
) -> None:
    (path,) = Path(ds.uri).glob(f"_indices/*/*{part}.lance")
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DamagedIndexError, match="t_idx") as raised:
        lance.dataset(ds.uri).to_table(full_text_query="fox")
    assert str(raised.value).count("cannot be searched") == 1
    assert "Build the index again" in str(raised.value)


@pytest.mark.parametrize("kind", ["NGRAM", "INVERTED"])
def test_a_filter_of_an_indexed_column_is_answered(ds: lance.LanceDataset, kind: str) -> None:
    ds.create_scalar_index("u", kind)
    assert ds.count_rows("contains(u, 'fox')") == 4
