"""Scalar indices of official releases answer right through our code, and ours through theirs."""

from __future__ import annotations

import pytest

from lancelake.index.kinds import kind_named
from tests.support.official import Official
from tests.support.scalar_index_tables import FILTERS, IndexedTable, create_index, rows

KINDS = {
    "BTREE": ("i", "f", "s", "d", "t", "b"),
    "BITMAP": ("k", "f", "s", "b", "d"),
    "LABEL_LIST": ("l", "g"),
}
COUNT = 10_000
DELETED = "n % 7 = 3"

ASK = """
ds = lance.dataset(uri)
result = []
for text in texts:
    scan = ds.to_table(filter=text, columns=["n"], use_scalar_index=False)["n"].to_pylist()
    plan = ds.scanner(filter=text, columns=["n"]).explain_plan()
    how = "by index" if "ScalarIndexQuery" in plan else "by scan"
    try:
        found = ds.to_table(filter=text, columns=["n"])["n"].to_pylist()
    except Exception as error:
        found, how = scan, "not: " + str(error)
    result.append([text, sorted(found) == sorted(scan), how, len(scan)])
"""
STATISTICS = """
ds = lance.dataset(uri)
result = {name: ds.stats.index_stats(name)["indices"] for name in names}
"""


def table_of(official: Official, uri: str, *, is_stable: bool = False) -> None:
    official.write(
        uri,
        rows(COUNT),
        max_rows_per_file=COUNT // 3,
        enable_stable_row_ids=is_stable,
        data_storage_version="2.0",
    )
    official.delete(uri, DELETED)


@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("name", KINDS)
def test_what_a_release_built_answers_as_a_scan(
    official: Official, tmp_table: str, name: str, is_stable: bool
) -> None:
    table_of(official, tmp_table, is_stable=is_stable)
    for column in KINDS[name]:
        official.create_scalar_index(tmp_table, column, name)

    table = IndexedTable(tmp_table)
    texts = [(text, column) for column in KINDS[name] for text in FILTERS[column]]
    assert [found for text, column in texts if (found := table.difference(text, column))] == []


@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize(
    ("name", "ranges"), [*((name, 0) for name in KINDS), ("BTREE", 3)], ids=str
)
def test_what_we_built_is_used_by_a_release_as_its_own(
    official: Official, tmp_table: str, tmp_path, name: str, ranges: int, is_stable: bool
) -> None:
    other = str(tmp_path / "other")
    for uri in (tmp_table, other):
        table_of(official, uri, is_stable=is_stable)
    for column in KINDS[name]:
        create_index(tmp_table, column, kind_named(name), ranges=ranges)
        official.create_scalar_index(other, column, name)

    texts = [text for column in KINDS[name] for text in FILTERS[column]]
    answers = official.run(tmp_table, ASK, texts=texts)
    assert [text for text, is_right, _, _ in answers if not is_right] == []
    assert answers == official.run(other, ASK, texts=texts)
    assert [how for _, _, how, _ in answers].count("by index") > len(texts) // 2


def test_ranges_without_rows_do_not_disturb_a_release(official: Official, tmp_table: str) -> None:
    official.write(tmp_table, rows(40))
    create_index(tmp_table, "i", kind_named("BTREE"), ranges=25)

    answers = official.run(tmp_table, ASK, texts=list(FILTERS["i"]))
    assert [(is_right, how) for _, is_right, how, _ in answers] == [(True, "by index")] * len(
        answers
    )


def test_statistics_are_those_of_the_release(official_14: Official, tmp_table: str) -> None:
    table_of(official_14, tmp_table)
    ours = {column: name for name, some in KINDS.items() for column in some}
    for column, name in ours.items():
        official_14.create_scalar_index(tmp_table, column, name)

    theirs = official_14.run(tmp_table, STATISTICS, names=[f"{column}_idx" for column in ours])
    table = IndexedTable(tmp_table)
    mine = {f"{column}_idx": [dict(table.segment(column).statistics())] for column in ours}
    assert mine == theirs


@pytest.mark.parametrize("name", ["BITMAP", "LABEL_LIST"])
def test_sets_are_written_byte_by_byte_as_releases_write_them(
    official: Official, tmp_table: str, tmp_path, name: str
) -> None:
    table_of(official, tmp_table)
    for column in KINDS[name]:
        official.create_scalar_index(tmp_table, column, name)
    theirs = {column: sets_of(tmp_table, column) for column in KINDS[name]}
    other = str(tmp_path / "other")
    table_of(official, other)
    for column in KINDS[name]:
        create_index(other, column, kind_named(name))

    assert {column: sets_of(other, column) for column in KINDS[name]} == theirs


def sets_of(uri: str, column: str) -> list[tuple[str, bytes]]:
    facts = IndexedTable(uri).facts(column)
    table = facts.folder.open("bitmap_page_lookup.lance").read()
    keys, bitmaps = table.column("keys").to_pylist(), table.column("bitmaps").to_pylist()
    return sorted((str(key), data) for key, data in zip(keys, bitmaps, strict=True))
