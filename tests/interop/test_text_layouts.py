"""Text indices in the layouts that release 14 writes by option: rows and scores are equal."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as ours
import lancelake.pylance.query as q
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


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_rows_that_are_not_indexed(
    official_14: Official, tmp_table: str, layout: dict[str, Any]
) -> None:
    official_14.write(tmp_table, table_of(1200))
    for column in ("t", "u"):
        built_by(official_14, tmp_table, {"with_position": True, **layout}, column)
    official_14.append(tmp_table, table_of(300, 7, first=1200))
    compare(official_14, tmp_table, asked(QUERIES, 1, fuzzy=False))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_official_searches_what_we_merged(
    official_14: Official, tmp_table: str, layout: dict[str, Any]
) -> None:
    official_14.write(tmp_table, table_of(1200))
    for column in ("t", "u"):
        built_by(official_14, tmp_table, {"with_position": True, **layout}, column)
    official_14.append(tmp_table, table_of(300, 7, first=1200))
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
