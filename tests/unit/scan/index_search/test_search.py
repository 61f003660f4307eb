"""Filters find the rows that a scan finds, and read no others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import DamagedIndexError
from lancelake.scan.index_search.search import IndexSearch
from lancelake.scan.plan import ScanPlan
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from tests.support.searched_tables import add_segment

COUNT = 40


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a table of four fragments of ten rows."""
    numbers = pa.array(range(COUNT))
    table = pa.table(
        {
            "n": numbers,
            "k": pa.array([None if n % 7 == 0 else n % 5 for n in range(COUNT)]),
            "t": pa.array([f"word{n}" for n in range(COUNT)]),
            "st": pa.array([None if n % 9 == 0 else {"x": n} for n in range(COUNT)]),
            "l": pa.array([None if n == 3 else [n % 3, n % 4] for n in range(COUNT)]),
        }
    )
    place = str(tmp_path / "t.lance")
    lance.write_dataset(table, place, max_rows_per_file=10, enable_stable_row_ids=request.param)
    return place


def planned(uri: str, text: str, **options: object) -> ScanPlan:
    request = ScanRequest(columns=("n",), filter=text, **options)
    return plan(lance.dataset(uri)._snapshot, request)


def used(uri: str, text: str, **options: object) -> IndexSearch:
    found = planned(uri, text, **options).index_search
    assert found is not None, text
    return found


def numbers(uri: str, text: str, **options: object) -> list[int]:
    return lance.dataset(uri).to_table(["n"], text, **options)["n"].to_pylist()


def ensure_same(uri: str, text: str) -> IndexSearch:
    """Raise AssertionError unless an index is used, and finds what a scan finds."""
    expected = numbers(uri, text, use_scalar_index=False)
    assert numbers(uri, text) == expected
    assert lance.dataset(uri).count_rows(text) == len(expected)
    return used(uri, text)


def test_only_fragments_with_rows_are_read(uri: str) -> None:
    add_segment(uri, "n", "BTREE")
    found = planned(uri, "n IN (3, 21, 22)")
    assert [(t.fragment.id, list(t.rows or ()), t.recheck) for t in found.tasks] == [
        (0, [3], False),
        (2, [1, 2], False),
    ]


def test_nothing_is_asked_unless_wanted(uri: str) -> None:
    add_segment(uri, "n", "BTREE")
    assert planned(uri, "n = 3", use_scalar_index=False).index_search is None
    assert planned(uri, "n = 3", include_deleted_rows=True).index_search is None


@pytest.mark.parametrize(
    "text",
    [
        "k = 2",
        "NOT (k = 2)",
        "k IS NULL OR n = 5",
        "NOT (k = 2 OR n > 20)",
        "k > 1 AND k <= 3 AND n BETWEEN 5 AND 30",
        "k IN (1, NULL)",
        "NOT (k IN (1, NULL)) OR n = 4",
        "k = 1 AND t = 'word6'",
        "false AND k = 1",
        "n = 4 OR false",
    ],
)
def test_joined_conditions_keep_their_nulls(uri: str, text: str) -> None:
    add_segment(uri, "k", "BITMAP")
    add_segment(uri, "n", "BTREE", zone_size=8)
    ensure_same(uri, text)


def test_part_of_a_disjunction_without_index_is_scanned(uri: str) -> None:
    add_segment(uri, "n", "BTREE")
    assert planned(uri, "n = 3 OR k = 1").index_search is None
    assert used(uri, "NOT (n = 3 OR k = 1) AND n < 5")


def test_ranges_of_one_column_are_one_question(uri: str) -> None:
    add_segment(uri, "n", "BTREE")
    assert len(used(uri, "n > 3 AND k = 1 AND n < 7").asked) == 1


def test_members_of_structs_are_found(uri: str) -> None:
    add_segment(uri, "st.x", "BTREE")
    ensure_same(uri, "st.x = 12")
    ensure_same(uri, "st.x IS NULL")


def test_elements_of_lists_are_found(uri: str) -> None:
    add_segment(uri, "l", "LABEL_LIST")
    ensure_same(uri, "array_has(l, 2)")
    ensure_same(uri, "NOT array_has_any(l, [0, 1])")


def test_candidates_are_checked(uri: str) -> None:
    add_segment(uri, "t", "NGRAM")
    add_segment(uri, "n", "ZONEMAP", rows_per_zone=2)
    found = ensure_same(uri, "contains(t, 'word11')")
    assert not any(rows.is_exact for rows in found.found.values())
    ensure_same(uri, "n > 33 AND n <> 35")


def test_patterns_stay_visible_beside_other_conditions(uri: str) -> None:
    add_segment(uri, "t", "NGRAM")
    ensure_same(uri, "t LIKE '%rd1_%' AND length(t) > 2 AND n + k > 3")


def test_rows_that_no_segment_covers_are_scanned(uri: str) -> None:
    add_segment(uri, "n", "BTREE", fragments={1})
    add_segment(uri, "n", "BTREE", fragments={3})
    add_segment(uri, "k", "BITMAP", fragments={0, 1})
    found = ensure_same(uri, "n IN (1, 12, 23, 35) AND k > 0")
    assert {each.index for each in found.asked} == {"n_btree", "k_bitmap"}
    tasks = {t.fragment.id: t for t in planned(uri, "n IN (1, 12, 23, 35) AND k > 0").tasks}
    assert tasks[2].rows is None
    assert [tasks[i].recheck for i in (0, 1, 3)] == [True, False, True]


def test_fast_search_leaves_out_what_is_not_covered(uri: str) -> None:
    add_segment(uri, "n", "BTREE", fragments={1})
    assert numbers(uri, "n IN (1, 12, 23)", fast_search=True) == [12]
    assert numbers(uri, "k = 1 AND n < 12", fast_search=True) == [11]
    assert numbers(uri, "k = 1", fast_search=True) == numbers(uri, "k = 1")


def test_deleted_and_updated_rows_are_masked(uri: str) -> None:
    add_segment(uri, "n", "BTREE")
    add_segment(uri, "k", "BITMAP")
    lance.dataset(uri).delete("n IN (3, 21)")
    lance.dataset(uri).update({"k": "9"}, where="n IN (4, 5)")
    for text in ("n < 8", "k = 9", "k = 4", "k <> 4", "n = 4"):
        ensure_same(uri, text)


def test_limit_and_offset_count_rows_that_are_found(uri: str) -> None:
    add_segment(uri, "k", "BITMAP")
    options = {"limit": 3, "offset": 4}
    expected = numbers(uri, "k = 2", use_scalar_index=False, **options)
    assert numbers(uri, "k = 2", **options) == expected
    assert numbers(uri, "k = 2", order_by=["n"], **options) == expected


def test_kind_or_version_that_is_not_known_is_not_used(uri: str) -> None:
    add_segment(uri, "n", "BTREE", index_version=2)
    assert planned(uri, "n = 3").index_search is None


def test_missing_file_is_named_with_its_index(uri: str) -> None:
    name = add_segment(uri, "n", "BTREE")
    (file,) = Path(uri).glob("_indices/*/page_lookup.lance")
    file.unlink()
    with pytest.raises(DamagedIndexError, match=f"{name}.*page_lookup.lance is missing"):
        numbers(uri, "n = 3")
    assert numbers(uri, "n = 3", use_scalar_index=False) == [3]


def test_damaged_file_is_named_with_its_index(uri: str) -> None:
    name = add_segment(uri, "k", "BITMAP")
    (file,) = Path(uri).glob("_indices/*/bitmap_page_lookup.lance")
    file.write_bytes(b"nothing of use")
    with pytest.raises(DamagedIndexError, match=name) as caught:
        numbers(uri, "k = 3")
    assert caught.value.facts["path"] == str(file.relative_to(uri))


def test_count_of_known_rows_reads_no_data(uri: str) -> None:
    add_segment(uri, "n", "BTREE")
    lance.dataset(uri).delete("n = 12")
    for file in (Path(uri) / "data").iterdir():
        file.unlink()
    assert lance.dataset(uri).count_rows("n >= 5 AND n < 15") == 9


def test_fragments_are_searched_by_themselves(uri: str) -> None:
    add_segment(uri, "n", "BTREE")
    fragment = lance.dataset(uri).get_fragment(1)
    assert fragment.to_table(["n"], filter="n IN (3, 12)")["n"].to_pylist() == [12]
    assert fragment.count_rows("n IN (3, 12)") == 1
    assert "ScalarIndexQuery" in fragment.scanner(filter="n = 12").explain_plan()


def test_queries_in_sql_ask_indices(uri: str) -> None:
    add_segment(uri, "n", "BTREE")
    query = lance.dataset(uri).sql("SELECT n + 1 AS m FROM dataset WHERE n IN (3, 12)").build()
    assert pa.Table.from_batches(query.to_batch_records())["m"].to_pylist() == [4, 13]
    assert "n_btree" in query.explain_plan()


def test_clones_search_the_indices_of_their_source(uri: str, tmp_path: Path) -> None:
    add_segment(uri, "n", "BTREE")
    table = lance.dataset(uri)
    copy = table.shallow_clone(str(tmp_path / "copy.lance"), table.version)
    assert "n_btree" in copy.scanner(filter="n = 12").explain_plan()
    assert copy.to_table(["n"], "n = 12")["n"].to_pylist() == [12]


def test_plan_names_index_question_and_rows(uri: str) -> None:
    add_segment(uri, "n", "BTREE", fragments={0, 1, 2})
    scanner = lance.dataset(uri).scanner(filter="n > 3 AND n < 6 AND k = 4")
    text = scanner.explain_plan()
    assert "ScalarIndexQuery: query=[n > 3 && n < 6]@n_btree(BTREE), rows=2" in text
    assert "fragments_skipped=2, fragments_scanned=1" in text
    assert "rows_to_check=2" in text
    assert "output_rows=1" in scanner.analyze_plan()
