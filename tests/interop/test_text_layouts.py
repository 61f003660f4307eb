"""Text indices in the layouts that release 14 writes by option: rows and scores are equal."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as ours
import lancelake.pylance.query as q
from lancelake.errors import UnsupportedError
from tests.support.official import Official
from tests.support.text_tables import ASK_OFFICIAL, BUILD, asked, ensure_same, table_of

exec(BUILD)  # the same functions run in official processes

LAYOUTS: list[dict[str, Any]] = [
    {"format_version": 1},
    {"format_version": 2},
    {"format_version": 3},
    {"block_size": 256},
]
QUERIES = 40


def built_by(official: Official, uri: str, options: dict[str, Any], column: str = "t") -> None:
    official.create_scalar_index(uri, column, "INVERTED", **options)


def compare(official: Official, uri: str, questions: list[list[Any]]) -> None:
    theirs = official.run(uri, ASK_OFFICIAL, asked=questions)
    mine = globals()["ask"](ours.dataset(uri), questions)
    ensure_same(questions, mine, theirs)


def has_index(uri: str) -> bool:
    scan = ours.dataset(uri).scanner(full_text_query=q.MatchQuery("word1", "t"))
    return "FlatMatchQuery" not in scan.explain_plan()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_rows_and_scores_of_each_layout(
    official_14: Official, tmp_table: str, layout: dict[str, Any]
) -> None:
    official_14.write(tmp_table, table_of(3000), max_rows_per_file=1000)
    official_14.delete(tmp_table, "id % 11 = 4")
    for column in ("t", "u"):
        built_by(official_14, tmp_table, {"with_position": True, **layout}, column)
    assert has_index(tmp_table)
    compare(official_14, tmp_table, asked(QUERIES))


def _half_indexed(official: Official, uri: str, layout: dict[str, Any]) -> None:
    """Index two columns, then append rows that the indices do not cover."""
    official.write(uri, table_of(1200))
    for column in ("t", "u"):
        built_by(official, uri, {"with_position": True, **layout}, column)
    official.append(uri, table_of(300, 7, first=1200))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_rows_that_are_not_indexed(
    official_14: Official, tmp_table: str, layout: dict[str, Any]
) -> None:
    _half_indexed(official_14, tmp_table, layout)
    compare(official_14, tmp_table, asked(QUERIES, 1, fuzzy=False))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_official_searches_what_we_merged(
    official_14: Official, tmp_table: str, layout: dict[str, Any]
) -> None:
    _half_indexed(official_14, tmp_table, layout)
    official_14.delete(tmp_table, "id % 13 = 2")
    ours.dataset(tmp_table).optimize.optimize_indices()
    ours.dataset(tmp_table).optimize.compact_files()
    compare(official_14, tmp_table, asked(QUERIES, 2))


def test_frequencies_far_above_the_others(official_14: Official, tmp_table: str) -> None:
    texts = ["w"] * 600
    for place, count in {5: 3, 7: 300, 100: 5000, 299: 2, 300: 70_000}.items():
        texts[place] = " ".join(["w"] * count)
    official_14.write(tmp_table, pa.table({"id": range(600), "t": texts}))
    built_by(official_14, tmp_table, {"block_size": 256})
    assert has_index(tmp_table)
    compare(official_14, tmp_table, [[["match", "w", "t", {}], {}]])


TOKENIZE = """
result = [
    [[each.text, each.position] for each in lance.tokenize(text, **options)] for text in texts
]
"""
ALPHABET = "abcXYZ0129_.,;:' -/\\()\"@#&*+=<>|~?\t\néßØǆΆλωЖяԯ“”—…€£«»"
NO_STOPS = {"remove_stop_words": False}


def odd_texts(count: int) -> list[str]:
    chance = random.Random(5)
    return ["".join(chance.choices(ALPHABET, k=chance.randrange(1, 14))) for _ in range(count)]


TOKENIZERS: list[dict[str, Any]] = [
    {"base_tokenizer": "icu"},
    {"base_tokenizer": "icu/split"},
    {"base_tokenizer": "code"},
    {"base_tokenizer": "code", "split_identifiers": True},
    {"base_tokenizer": "code", "split_identifiers": True, "split_on_numerics": False},
    {"base_tokenizer": "code", "split_identifiers": True, "preserve_original": False},
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=str)
def test_tokenizers_make_the_terms_of_release_14(
    official_14: Official, tokenizer: dict[str, Any]
) -> None:
    texts = odd_texts(1000)
    options = {**tokenizer, **NO_STOPS}
    theirs = official_14.run("", TOKENIZE, texts=texts, options=options)
    mine = [[[e.text, e.position] for e in ours.tokenize(text, **options)] for text in texts]
    assert mine == theirs


SOURCES = pa.table(
    {
        "id": range(60),
        "t": [f"getUser{i % 7}(foo_bar{i % 3}, x.y) don't 3.14 naïve_{i}" for i in range(60)],
    }
)
IN_SOURCES: list[list[Any]] = [
    [["match", text, "t", {}], {}]
    for text in ("foo_bar1", "foo", "getUser3 x.y", "don't", "3.14", "naïve_7", "bar1 getUser2")
]
IN_SOURCES += [[["match", text, "t", {"all": True}], {}] for text in ("getUser3", "bar1 user")]
IN_SOURCES += [[["phrase", text, "t", 0], {}] for text in ("getUser3 foo_bar1", "x.y don't")]


@pytest.mark.parametrize("builder", ["ours", "theirs"])
@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=str)
def test_indices_of_other_tokenizers(
    official_14: Official, tmp_table: str, tokenizer: dict[str, Any], builder: str
) -> None:
    official_14.write(tmp_table, SOURCES)
    options = {**tokenizer, "with_position": True, **NO_STOPS}
    if builder == "ours":
        ours.dataset(tmp_table).create_scalar_index("t", "INVERTED", **options)
    else:
        built_by(official_14, tmp_table, options)
    compare(official_14, tmp_table, IN_SOURCES)
    official_14.append(tmp_table, SOURCES)
    official_14.delete(tmp_table, "id % 13 = 2")
    compare(official_14, tmp_table, IN_SOURCES)
    ours.dataset(tmp_table).optimize.optimize_indices()
    ours.dataset(tmp_table).optimize.compact_files()
    assert has_index(tmp_table)
    compare(official_14, tmp_table, IN_SOURCES)
    official_14.append(tmp_table, SOURCES)
    official_14.run(tmp_table, "result = lance.dataset(uri).optimize.optimize_indices()")
    compare(official_14, tmp_table, IN_SOURCES)


def test_an_index_with_terms_that_are_not_known_is_kept_and_not_replaced_by_other_terms(
    official_14: Official, tmp_table: str
) -> None:
    words = "index_operators"
    official_14.write(tmp_table, SOURCES)
    built_by(official_14, tmp_table, {"base_tokenizer": "code", words: True})
    table = ours.dataset(tmp_table)
    with pytest.raises(UnsupportedError, match=words):
        table.to_table(full_text_query=q.MatchQuery("foo", "t"))
    ours.write_dataset(SOURCES, tmp_table, mode="append")
    ours.dataset(tmp_table).optimize.optimize_indices()
    ours.dataset(tmp_table).optimize.compact_files()
    with pytest.raises(UnsupportedError, match=words):
        ours.dataset(tmp_table).to_table(full_text_query=q.MatchQuery("foo", "t"))
    (found,) = official_14.run(tmp_table, ASK_OFFICIAL, asked=[IN_SOURCES[5]])
    assert found[0][:2] == [7, 7]


def test_a_query_in_another_alphabet_is_refused(official_14: Official, tmp_table: str) -> None:
    official_14.write(tmp_table, SOURCES)
    built_by(official_14, tmp_table, {"base_tokenizer": "icu", **NO_STOPS})
    with pytest.raises(UnsupportedError, match="ICU"):
        ours.dataset(tmp_table).to_table(full_text_query=q.MatchQuery("日本語", "t"))


BY_ELEMENT = """
from lance.query import DocumentGranularity
options = {"document_granularity": DocumentGranularity.LIST_ELEMENT}
lance.dataset(uri).create_scalar_index("t", "INVERTED", **options)
result = None
"""


def test_an_index_with_a_document_per_list_element_is_not_replaced_by_rows(
    official_14: Official, tmp_table: str
) -> None:
    ours.write_dataset(pa.table({"id": [0, 1], "t": [["red fox", "owl"], ["red"]]}), tmp_table)
    official_14.run(tmp_table, BY_ELEMENT)
    with pytest.raises(UnsupportedError, match="list elements as documents"):
        ours.dataset(tmp_table).to_table(full_text_query=q.MatchQuery("red", "t"))


def test_one_term_of_a_position_is_enough_for_a_phrase(
    official_14: Official, tmp_table: str
) -> None:
    texts = ["hello world", "world hello", "help word", "hell", "lo wor"]
    official_14.write(tmp_table, pa.table({"id": range(5), "t": texts}))
    built_by(official_14, tmp_table, {"base_tokenizer": "ngram", "with_position": True})
    asked_for = ("hello", "hello world", "ell", "hello help")
    compare(official_14, tmp_table, [[["phrase", text, "t", 0], {}] for text in asked_for])
