"""Tables whose indices were written by early releases: answers are those of a scan."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lancelake.maintenance.check.finding import Severity
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from tests.support.readers import face

TABLES = Path(__file__).parent / "tables"
LEGACY = TABLES / "v0.13.0" / "legacy_indices.lance"
STEPS = TABLES / "v0.20.0" / "indices.lance"
"""Indices are built from version 2 to 5; then values change in place, a refresh, a compaction."""
PAGES = TABLES / "v0.20.0" / "pages.lance"
REPLACED = [TABLES / "v0.27.2" / "replaced.lance", TABLES / "v0.32.1" / "replaced.lance"]
"""An index is built in version 2; then a data file is replaced."""
GRAPH = TABLES / "v0.23.2" / "graph.lance"
EARLY = TABLES / "v0.27.2" / "indices.lance"
LOST_NULLS = TABLES / "v0.29.0" / "bitmap.lance"
OTHER_COLUMNS = TABLES / "v0.32.1" / "btree.lance"
STALE = TABLES / "v1.0.4" / "compacted_btree.lance"

PAGE_FILTERS = ["k = 7", "k >= 1000 AND k < 2900", "k IN (0, 2999, 5000)", "k <> 4", "k IS NULL"]
FILTERS = [
    (LEGACY, "id = 42"),
    (LEGACY, "id >= 10 AND id < 50"),
    (EARLY, "id IN (1, 5, 44)"),
    (EARLY, "k IS NULL"),
    (EARLY, "k > 'bee'"),
    (EARLY, "k <> 'cat'"),
    (LOST_NULLS, "k IS NULL"),
    (LOST_NULLS, "k > 'bee'"),
    (OTHER_COLUMNS, "id > 30"),
    *((PAGES, text) for text in PAGE_FILTERS),
    *((table, text) for table in REPLACED for text in ("k = 1", "k = 501")),
    *((STALE, f"k = {key}") for key in range(0, 9000, 450)),
    (STALE, "k >= 4000 AND k < 4300"),
]


@pytest.mark.parametrize(("table", "text"), FILTERS, ids=[f"{t.stem} {f}" for t, f in FILTERS])
def test_a_filter_finds_the_rows_of_a_scan(table: Path, text: str) -> None:
    ds = face.dataset(str(table))
    found = ds.to_table(columns=["id"], filter=text).to_pydict()
    assert found == ds.to_table(columns=["id"], filter=text, use_scalar_index=False).to_pydict()


def test_an_index_in_legacy_files_is_listed() -> None:
    found = {index["name"] for index in face.dataset(str(LEGACY)).list_indices()}
    assert found == {"id_idx", "v_idx"}


def test_vectors_with_an_index_in_legacy_files_are_searched() -> None:
    ds = face.dataset(str(LEGACY))
    query = ds.take([7], columns=["v"])["v"][0].as_py()
    rows = ds.to_table(columns=["id"], nearest={"column": "v", "q": query, "k": 3})
    assert rows["id"][0].as_py() == 7


def test_codes_without_a_number_of_bits_have_a_byte() -> None:
    ds = face.dataset(str(GRAPH))
    query = ds.take([7], columns=["v"])["v"][0].as_py()
    nearest = {"column": "v", "q": query, "k": 3, "refine_factor": 20}
    rows = ds.to_table(columns=["id"], nearest=nearest)
    assert rows["id"][0].as_py() == 7


def test_texts_with_an_index_without_partitions_are_searched() -> None:
    ds = face.dataset(str(EARLY))
    found = ds.to_table(columns=["id"], full_text_query="eel")["id"].to_pylist()
    texts = ds.to_table(columns=["id", "text"]).to_pylist()
    assert sorted(found) == [row["id"] for row in texts if "eel" in row["text"]]


@pytest.mark.parametrize("table", [LEGACY, GRAPH, EARLY, OTHER_COLUMNS], ids=lambda t: t.stem)
def test_a_table_with_such_an_index_is_not_damaged(table: Path) -> None:
    found = check(Location.parse(table), data=True)
    assert [str(each) for each in found if each.severity is Severity.ERROR] == []


def test_check_advises_to_build_an_index_with_stale_bounds_again() -> None:
    found = check(Location.parse(STALE), data=True)
    assert [each.code for each in found if each.severity is Severity.ERROR] == [
        "index-file-damaged"
    ]


def test_a_new_index_replaces_an_index_that_is_not_read(tmp_path: Path) -> None:

    uri = str(shutil.copytree(EARLY, tmp_path / "t.lance"))
    face.dataset(uri).create_scalar_index("k", "BITMAP", replace=True)
    ds = face.dataset(uri)
    assert "ScalarIndexQuery" in ds.scanner(filter="k > 'bee'").explain_plan()


def test_an_index_of_release_0_29_that_lost_nothing_is_used(tmp_path: Path) -> None:
    uri = str(shutil.copytree(LOST_NULLS, tmp_path / "t.lance"))
    before_compaction = face.dataset(uri, version=2)
    plan = before_compaction.scanner(filter="k > 'bee'").explain_plan()
    assert "ScalarIndexQuery" in plan


def is_indexed(table: Path | str, text: str, version: int | None = None) -> bool:
    ds = face.dataset(str(table), version=version)
    scan = ds.scanner(filter=text, columns=["id"])
    plain = ds.to_table(filter=text, columns=["id"], use_scalar_index=False)
    assert scan.to_table().to_pydict() == plain.to_pydict()
    return "ScalarIndexQuery" in scan.explain_plan()


@pytest.mark.parametrize(
    ("table", "text"), [(LEGACY, "id = 42"), (OTHER_COLUMNS, "id > 30"), (PAGES, "k >= 2990")]
)
def test_an_index_is_used_that_is_as_it_was_built(table: Path, text: str) -> None:
    assert is_indexed(table, text)


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("k >= 7", {2, 3, 4, 5}),
        ("s = ''", {4, 5, 6, 7}),
        ("v IS NULL", {5, 6, 7}),
        ("v = 'a'", {5, 6, 7}),
        # Its files do not distinguish nulls from zeros.
        ("n = 0", set()),
        ("n IS NULL", set()),
    ],
)
def test_an_index_is_used_until_its_values_change_or_it_is_written_again(
    text: str, versions: set[int]
) -> None:
    used = {version for version in range(1, 12) if is_indexed(STEPS, text, version)}
    assert used == versions


@pytest.mark.parametrize("table", REPLACED, ids=lambda table: table.parent.name)
def test_an_index_of_a_replaced_data_file_is_not_used(table: Path) -> None:
    assert is_indexed(table, "k >= 7", 2)
    assert not is_indexed(table, "k >= 7", 3)


def test_an_index_is_not_used_when_the_version_it_was_built_from_was_removed(
    tmp_path: Path,
) -> None:
    table = shutil.copytree(STEPS, tmp_path / "t.lance")
    for version in (1, 2, 3):
        (table / "_versions" / f"{version}.manifest").unlink()
    assert not is_indexed(table, "k >= 7", 5)
    assert not is_indexed(table, "s = ''", 5)
    assert is_indexed(table, "v = 'a'", 5)


def test_an_index_in_legacy_files_is_refreshed_and_follows_a_compaction(tmp_path: Path) -> None:
    uri = str(shutil.copytree(PAGES, tmp_path / "t.lance"))
    ds = face.dataset(uri)
    face.write_dataset(ds.to_table(limit=500), uri, mode="append")
    ds = face.dataset(uri)
    ds.optimize.optimize_indices()
    ds.delete("id % 7 = 3")
    ds.optimize.compact_files()
    assert {len(index["fragment_ids"]) for index in face.dataset(uri).list_indices()} == {1}
    assert all(is_indexed(uri, text) for text in PAGE_FILTERS)
