"""Reads of single rows compared with pylance: by id, by position, struct fields, repeats."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import lance as official
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from tests.support.compare import assert_same_table

Columns = list[str] | dict[str, str] | None


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable ids"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table with deleted, updated and compacted rows."""
    path = tmp_path_factory.mktemp("rows") / "t.lance"
    rows = pa.table({"i": range(40), "s": [{"a": k, "b": str(k)} for k in range(40)]})
    ds = official.write_dataset(
        rows, path, max_rows_per_file=10, enable_stable_row_ids=request.param
    )
    ds.delete("i % 7 = 0")
    ds.update({"i": "i + 100"}, where="i % 5 = 1")
    if request.param:
        ds.optimize.compact_files(target_rows_per_fragment=20)
    return path


def both(path: Path) -> tuple[Any, Any]:
    """Open a table by pylance and by us."""
    return official.dataset(path), lance.dataset(path)


COLUMNS: list[Columns] = [
    None,
    ["i"],
    ["i", "i"],
    ["s.a"],
    ["s.b", "i", "s.a"],
    ["s.b", "s.b"],
    ["_rowid", "i", "_rowaddr"],
    {"x": "i + 1"},
]


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
def test_rows_by_id_are_the_same(path: Path, columns: Columns) -> None:
    theirs, ours = both(path)
    ids = theirs.to_table(columns=["i"], with_row_id=True).column("_rowid").to_pylist()
    asked = [*ids[::3], ids[0], *ids[:10:2], ids[-1], ids[-1]]
    assert_same_table(ours._take_rows(asked, columns), theirs._take_rows(asked, columns))


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
def test_rows_by_number_are_the_same(path: Path, columns: Columns) -> None:
    theirs, ours = both(path)
    asked = [20, 3, 3, 0, 25]
    assert_same_table(ours.take(asked, columns), theirs.take(asked, columns))


@pytest.mark.parametrize("missing", [[0, 7], [99 << 32], []], ids=str)
def test_ids_that_are_not_there_are_left_out(path: Path, missing: list[int]) -> None:
    theirs, ours = both(path)
    present = theirs.to_table(columns=["i"], with_row_id=True).column("_rowid").to_pylist()[5]
    asked = [*missing, present]
    assert_same_table(ours._take_rows(asked, ["i"]), theirs._take_rows(asked, ["i"]))


@pytest.mark.parametrize(("ids", "kind"), [([-1], OverflowError), ([0.5], TypeError)])
def test_what_is_no_id_is_refused(path: Path, ids: list[Any], kind: type[Exception]) -> None:
    for ds in both(path):
        with pytest.raises(kind):
            ds._take_rows(ids, ["i"])


def test_offset_that_a_fragment_never_had_is_refused(tmp_path: Path) -> None:
    official.write_dataset(pa.table({"i": [1, 2]}), tmp_path / "t.lance")
    for ds in both(tmp_path / "t.lance"):
        with pytest.raises(OSError, match="2"):
            ds._take_rows([5], ["i"])


@pytest.mark.parametrize(("start", "end"), [(0, 3), (5, 25), (3, 3), (30, 60)])
def test_slices_are_the_same(path: Path, start: int, end: int) -> None:
    theirs, ours = both(path)
    assert_same_table(ours.slice(start, end, ["i"]), theirs.slice(start, end, ["i"]))


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (3, 2)])
def test_slice_that_ends_before_it_starts_is_refused(path: Path, start: int, end: int) -> None:
    for ds in both(path):
        with pytest.raises(ValueError, match="start"):
            ds.slice(start, end)


def test_options_of_the_store_are_shown(path: Path) -> None:
    options = {"allow_http": "true"}
    ds = lance.dataset(path, storage_options=options)
    assert ds.initial_storage_options == ds.latest_storage_options() == options
    assert lance.dataset(path).initial_storage_options is None


def test_the_coverage_of_an_index_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    rows = pa.table({"i": range(100), "s": [str(k) for k in range(100)]})
    ds = official.write_dataset(rows, path, max_rows_per_file=30)
    ds.create_scalar_index("i", "BTREE")
    ds.create_scalar_index("s", "BITMAP")
    official.write_dataset(rows.slice(0, 20), path, mode="append").delete("i < 5")
    theirs, ours = both(path)
    for name in ("i_idx", "s_idx"):
        expected = theirs.index_statistics(name)
        found = ours.index_statistics(name)
        assert found == {key: expected[key] for key in found}
        assert ours.stats.index_stats(name) == found
    for opened in (theirs, ours):
        with pytest.raises(KeyError, match="not found"):
            opened.index_statistics("nothing")


def without_time(version: Any) -> dict[str, Any]:
    return {key: value for key, value in version.items() if key != "timestamp"}


def test_versions_and_fragments_are_listed_alike(path: Path) -> None:
    theirs, ours = both(path)
    assert without_time(ours.get_version()) == without_time(theirs.get_version())
    # Official Lance takes the time as a float, which does not hold every microsecond.
    between = ours.get_version()["timestamp"] - theirs.get_version()["timestamp"]
    assert abs(between) <= timedelta(microseconds=1)
    assert ours.version_refs() == theirs.version_refs()
    assert list(ours.fragment_ids()) == list(theirs.fragment_ids())
