"""Full text indices go back and forth between us and official releases; answers are equal.

The reference is release 14: release 4 counts a repeated term of a query once, ignores absent terms
where all are required, and does not search phrases in rows that are not indexed.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as ours
import lancelake.pylance.query as q
from tests.support.official import RELEASES, Official, OfficialPool
from tests.support.text_tables import (
    ASK_OFFICIAL,
    BUILD,
    asked,
    ensure_same,
    table_of,
)

exec(BUILD)  # the same functions run in official processes

QUERIES = 60
OPTIONS = {"with_position": True}
BUILDERS = ["ours", *RELEASES]
PLAIN = [
    [["match", "word5 word9", "t", {}], {}],
    [["match", "word3", "t", {}], {"limit": 7}],
    [["phrase", "word0 word1", "t", 0], {}],
    [["match", "wrd2", "t", {"fuzziness": 1}], {}],
]
UNREADABLE = "release 4 fails to read the positions that release 14 writes"


def is_readable(builder: str, reader: str) -> bool:
    """Whether a release can write an index again that another one built."""
    return (builder, reader) != ("14.0.2", "4.0.2")


def mine(uri: str, questions: list[list[Any]]) -> list[Any]:
    found: list[Any] = globals()["ask"](ours.dataset(uri), questions)
    return found


def prepare(officials: OfficialPool, uri: str, builder: str, *, stable: bool = False) -> None:
    """Write a table whose columns t and u are indexed by one of us."""
    official = officials("14.0.2")
    official.write(uri, table_of(1200), max_rows_per_file=500, enable_stable_row_ids=stable)
    official.delete(uri, "id % 11 = 4")
    for column in ("t", "u"):
        build(officials, uri, builder, column)


def build(officials: OfficialPool, uri: str, builder: str, column: str) -> None:
    if builder == "ours":
        ours.dataset(uri).create_scalar_index(column, "INVERTED", **OPTIONS)
    else:
        officials(builder).create_scalar_index(uri, column, "INVERTED", **OPTIONS)


def compare(official: Official, uri: str, questions: list[list[Any]]) -> None:
    theirs = official.run(uri, ASK_OFFICIAL, asked=questions)
    assert isinstance(theirs, list)
    ensure_same(questions, mine(uri, questions), theirs)


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_rows_and_scores_are_those_of_release_14(
    officials: OfficialPool, official_14: Official, tmp_table: str, builder: str, stable: bool
) -> None:
    prepare(officials, tmp_table, builder, stable=stable)
    compare(official_14, tmp_table, asked(QUERIES))


@pytest.mark.parametrize("builder", BUILDERS)
def test_rows_and_scores_are_those_of_release_4(
    officials: OfficialPool, official_4: Official, tmp_table: str, builder: str
) -> None:
    prepare(officials, tmp_table, builder)
    compare(official_4, tmp_table, PLAIN)


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_rows_that_are_not_indexed_get_the_scores_of_release_14(
    officials: OfficialPool, official_14: Official, tmp_table: str, builder: str, stable: bool
) -> None:
    prepare(officials, tmp_table, builder, stable=stable)
    official_14.append(tmp_table, table_of(300, 7, first=1200))
    official_14.update(tmp_table, {"t": "'word1 word2 word9'"}, where="id % 50 = 1")
    compare(official_14, tmp_table, asked(QUERIES, 1, fuzzy=False))


def test_a_column_without_an_index_is_searched_as_release_14_does(
    official_14: Official, tmp_table: str
) -> None:
    official_14.write(tmp_table, table_of(300), max_rows_per_file=100)
    texts = ("word1 word22", "Straße", "strasse", "Die", "café", "WORD3", "the", "word1")
    questions: list[Any] = [[["match", text, "t", {}], {}] for text in texts]
    questions += [[["match", "word1 word2", "t", {"all": True}], {}]]
    questions += [[["phrase", text, "t", 0], {}] for text in ("word0 word1", "Die Straße")]
    theirs = official_14.run(tmp_table, ASK_OFFICIAL, asked=questions)
    assert isinstance(theirs, list)
    for (ids, scores), (other_ids, other_scores) in zip(
        mine(tmp_table, questions), theirs, strict=True
    ):
        # Release 14 returns them in the order of the table.
        expected = dict(zip(other_ids, other_scores, strict=True))
        assert dict(zip(ids, scores, strict=True)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("maintainer", BUILDERS)
@pytest.mark.parametrize("builder", BUILDERS)
def test_an_index_that_another_maintains_is_searched(
    officials: OfficialPool, official_14: Official, tmp_table: str, builder: str, maintainer: str
) -> None:
    if not is_readable(builder, maintainer):
        pytest.skip(UNREADABLE)
    prepare(officials, tmp_table, builder)
    official_14.append(tmp_table, table_of(300, 7, first=1200))
    official_14.delete(tmp_table, "id % 13 = 2")
    if maintainer == "ours":
        table = ours.dataset(tmp_table)
        table.optimize.optimize_indices()
        ours.dataset(tmp_table).optimize.compact_files()
    else:
        code = """
ds = lance.dataset(uri)
ds.optimize.optimize_indices()
ds = lance.dataset(uri)
result = ds.optimize.compact_files().fragments_removed
"""
        officials(maintainer).run(tmp_table, code)
    compare(official_14, tmp_table, asked(QUERIES, 2))


CHANGES = """
ds = lance.dataset(uri)
ds.delete("id % 13 = 2")
lance.write_dataset(new, uri, mode="append")
lance.dataset(uri).update({"t": "'word1 word2 word9'"}, where="id % 50 = 1")
merge = lance.dataset(uri).merge_insert("id").when_matched_update_all()
merge.when_not_matched_insert_all().execute(merged)
result = None
"""
COMPACT = """
result = lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=600).files_added
"""
REFRESH = "result = lance.dataset(uri).optimize.optimize_indices()"
NEW_ROWS = """
import pyarrow as pa
new, merged = pa.table(new), pa.table(merged)
"""


def do(officials: OfficialPool, uri: str, who: str, code: str, **inputs: Any) -> None:
    """Run the same code with our library or with an official one."""
    if who == "ours":
        exec(code, {"lance": ours, "uri": uri, **inputs})
    else:
        officials(who).run(uri, code, **inputs)


@pytest.mark.parametrize("changer", BUILDERS)
@pytest.mark.parametrize("builder", BUILDERS)
def test_nothing_is_lost_when_another_changes_the_table(
    officials: OfficialPool, official_14: Official, tmp_table: str, builder: str, changer: str
) -> None:
    prepare(officials, tmp_table, builder)
    rows = {"new": table_of(300, 7, first=1200), "merged": table_of(200, 9, first=1100)}
    new = {name: table.to_pydict() for name, table in rows.items()}
    do(officials, tmp_table, changer, NEW_ROWS + CHANGES, **new)
    if is_readable(builder, changer):
        do(officials, tmp_table, changer, COMPACT)
    compare(official_14, tmp_table, asked(QUERIES, 3, fuzzy=False))
    ensure_same_as_without_index(tmp_table)


def ensure_same_as_without_index(uri: str) -> None:
    """The rows of words are those that a look at all texts finds."""
    table = ours.dataset(uri)
    content = table.to_table(["id", "t"]).to_pylist()
    for wanted in ("word1", "word7", "word9"):
        found = table.to_table(["id"], full_text_query=q.MatchQuery(wanted, "t"))
        expected = [row["id"] for row in content if wanted in (row["t"] or "").split()]
        assert sorted(found["id"].to_pylist()) == sorted(expected)


@pytest.mark.parametrize("refresher", BUILDERS)
@pytest.mark.parametrize("builder", BUILDERS)
def test_nothing_is_lost_when_another_refreshes_the_index_of_a_changed_table(
    officials: OfficialPool, official_14: Official, tmp_table: str, builder: str, refresher: str
) -> None:
    if not is_readable(builder, refresher):
        pytest.skip(UNREADABLE)
    prepare(officials, tmp_table, builder)
    rows = {"new": table_of(300, 7, first=1200), "merged": table_of(200, 9, first=1100)}
    new = {name: table.to_pydict() for name, table in rows.items()}
    do(officials, tmp_table, "ours", NEW_ROWS + CHANGES, **new)
    do(officials, tmp_table, "ours", COMPACT)
    do(officials, tmp_table, refresher, REFRESH)
    compare(official_14, tmp_table, asked(QUERIES, 4))
    ensure_same_as_without_index(tmp_table)


@pytest.mark.parametrize(
    "options",
    [
        {"base_tokenizer": "whitespace", "lower_case": False},
        {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 4},
        {"base_tokenizer": "raw"},
        {"language": "German", "ascii_folding": False},
        {"custom_stop_words": ["word1"], "stem": False},
        {"max_token_length": 6},
    ],
    ids=str,
)
@pytest.mark.parametrize("builder", BUILDERS)
def test_tokenizers_make_the_same_terms(
    officials: OfficialPool, official_14: Official, tmp_table: str, builder: str, options: Any
) -> None:
    official_14.write(tmp_table, table_of(300))
    if builder == "ours":
        ours.dataset(tmp_table).create_scalar_index("t", "INVERTED", **options)
    else:
        officials(builder).create_scalar_index(tmp_table, "t", "INVERTED", **options)
    questions = [
        [["match", text, "t", {}], {}]
        for text in ("word1 word22", "Straße", "naïve café", "ord", "WORD3")
    ]
    compare(official_14, tmp_table, questions)
    code = "result = lance.dataset(uri).stats.index_stats('t_idx')['indices'][0]['num_tokens']"
    (shown,) = ours.dataset(tmp_table).stats.index_stats("t_idx")["indices"]
    assert official_14.run(tmp_table, code) == shown["num_tokens"]


LISTED = pa.table(
    {
        "id": range(6),
        "t": [["red fox", "blue dog", None, "", "owl"], ["dog", "owl"], None, [], [None], ["red"]],
    }
)
IN_LISTS = [
    [["match", "red", "t", {}], {}],
    [["match", "dog owl", "t", {}], {}],
    [["phrase", "fox blue", "t", 0], {}],
    [["phrase", "dog owl", "t", 0], {}],
]


@pytest.mark.parametrize("builder", ["ours", "14.0.2"])
def test_lists_of_strings_are_one_document_per_row(
    officials: OfficialPool, official_14: Official, tmp_table: str, builder: str
) -> None:
    ours.write_dataset(LISTED, tmp_table)
    build(officials, tmp_table, builder, "t")
    ours.write_dataset(LISTED.slice(0, 2), tmp_table, mode="append")
    compare(official_14, tmp_table, IN_LISTS)


def test_release_4_searches_our_index_of_lists(official_4: Official, tmp_table: str) -> None:
    ours.write_dataset(LISTED, tmp_table)
    ours.dataset(tmp_table).create_scalar_index("t", "INVERTED", **OPTIONS)
    compare(official_4, tmp_table, IN_LISTS)


def test_an_index_of_release_4_of_lists_has_a_document_per_element(
    official_4: Official, tmp_table: str
) -> None:
    ours.write_dataset(LISTED, tmp_table)
    official_4.create_scalar_index(tmp_table, "t", "INVERTED", **OPTIONS)
    found = ours.dataset(tmp_table).to_table(["id"], full_text_query="owl")
    assert sorted(found["id"].to_pylist()) == [0, 1]
