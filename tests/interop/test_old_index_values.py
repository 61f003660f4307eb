"""Indices of updated rows that release 4.0.2 refreshed, in tables with stable row ids."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.index.scalar.btree.kind import BTREE
from tests.support.index_tables import add_index, entries_of
from tests.support.official import OfficialPool

OLD, NEW = "4.0.2", "14.0.2"
WORDS = ("alpha", "beta", "gamma", "delta")
UPDATE = """
ds = lance.dataset(uri)
if merges:
    new = pa.table({"n": list(range(10)), "c": [1] * 10})
    ds.merge_insert("n").when_matched_update_all().execute(new)
else:
    ds.update({"c": "1"}, "n < 10")
ds.optimize.optimize_indices(**options)
if compacts:
    ds.optimize.compact_files()
    ds.optimize.optimize_indices(**options)
result = None
"""
COUNTS = """
ds = lance.dataset(uri)
def rows(by_index, n):
    return ds.to_table(filter=f"c = {n}", use_scalar_index=by_index).num_rows
result = [n for n in range(4) if rows(True, n) != rows(False, n)]
"""
VARIANTS = list(itertools.product([None, 2], [False, True], [False, True]))


def _run(merged: int | None, merges: bool, compacts: bool) -> dict[str, object]:
    options = {} if merged is None else {"num_indices_to_merge": merged}
    return {"options": options, "merges": merges, "compacts": compacts}


def _numbers(uri: str) -> None:
    rows = pa.table({"n": range(120), "c": [n % 4 for n in range(120)]})
    args = {"max_rows_per_file": 40, "data_storage_version": "2.0"}
    lance.write_dataset(rows, uri, enable_stable_row_ids=True, **args)


def _wrong(uri: str) -> list[int]:
    ds = lance.dataset(uri)
    scanned = ds.to_table(["c"])["c"].to_pylist()
    return [n for n in range(4) if ds.count_rows(f"c = {n}") != scanned.count(n)]


@pytest.mark.parametrize(("merged", "merges", "compacts"), VARIANTS)
def test_a_btree_of_ours_has_no_old_values_after_a_refresh_by_the_old_release(
    merged: int | None, merges: bool, compacts: bool, officials: OfficialPool, tmp_table: str
) -> None:
    _numbers(tmp_table)
    lance.dataset(tmp_table).create_scalar_index("c", "BTREE")
    officials(OLD).run(tmp_table, "import pyarrow as pa" + UPDATE, **_run(merged, merges, compacts))
    assert [officials(release).run(tmp_table, COUNTS) for release in (OLD, NEW)] == [[], []]
    assert _wrong(tmp_table) == []


@pytest.mark.parametrize(("merged", "merges", "compacts"), VARIANTS)
def test_old_values_that_the_old_release_left_in_its_btree_are_not_found(
    merged: int | None, merges: bool, compacts: bool, officials: OfficialPool, tmp_table: str
) -> None:
    _numbers(tmp_table)
    old = officials(OLD)
    old.create_scalar_index(tmp_table, "c", "BTREE")
    old.run(tmp_table, "import pyarrow as pa" + UPDATE, **_run(merged, merges, compacts))
    assert officials(NEW).run(tmp_table, COUNTS) != []
    assert _wrong(tmp_table) == []


def test_a_merge_does_not_match_rows_by_old_keys(officials: OfficialPool, tmp_table: str) -> None:
    rows = pa.table({"n": range(1000), "c": range(1000)})
    args = {"max_rows_per_file": 300, "data_storage_version": "2.0"}
    lance.write_dataset(rows, tmp_table, enable_stable_row_ids=True, **args)
    old = officials(OLD)
    old.create_scalar_index(tmp_table, "c", "BTREE")
    change = "ds = lance.dataset(uri)\nds.update({'c': 'c + 5000'}, 'n < 10')\n"
    old.run(tmp_table, change + "ds.optimize.optimize_indices()\nresult = None")
    merge = lance.dataset(tmp_table).merge_insert("c").when_matched_update_all()
    done = merge.when_not_matched_insert_all().execute(pa.table({"c": [3, 500], "n": [-1, -2]}))
    assert (done["num_inserted_rows"], done["num_updated_rows"]) == (1, 1)


def test_a_refresh_of_ours_writes_a_btree_that_no_release_misreads(
    officials: OfficialPool, tmp_table: str
) -> None:
    _numbers(tmp_table)
    old = officials(OLD)
    old.create_scalar_index(tmp_table, "c", "BTREE")
    old.run(tmp_table, "import pyarrow as pa" + UPDATE, **_run(2, False, False))
    ds = lance.dataset(tmp_table)
    ds.insert(pa.table({"n": [500], "c": [3]}))
    ds.optimize.optimize_indices(num_indices_to_merge=0)
    assert [entry.index_version for entry in entries_of(tmp_table)] == [1]
    assert [officials(release).run(tmp_table, COUNTS) for release in (OLD, NEW)] == [[], []]


def test_stable_ids_and_addresses_are_not_mixed_in_an_index(
    officials: OfficialPool, tmp_table: str
) -> None:
    """Release 14.0.2 refuses to read such an index."""
    _numbers(tmp_table)
    name = add_index(tmp_table, BTREE, "c")
    ds = lance.dataset(tmp_table)
    ds.insert(pa.table({"n": [500], "c": [3]}))
    new = ds.create_index_uncommitted("c", "BTREE", name=name, fragment_ids=[3])
    with pytest.raises(ValueError, match="row ids, and others row addresses"):
        ds.commit_existing_index_segments(name, "c", [new])


def _ranked(uri: str) -> lance.LanceDataset:
    vectors = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32)
    rows = pa.table(
        {
            "n": range(400),
            "t": [f"{WORDS[n % 4]} word" for n in range(400)],
            "l": [[WORDS[n % 4]] for n in range(400)],
            "v": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 8),
        }
    )
    args = {"max_rows_per_file": 100, "data_storage_version": "2.0"}
    return lance.write_dataset(rows, uri, enable_stable_row_ids=True, **args)


REPLACE = """
import pyarrow as pa
ds = lance.dataset(uri)
old = ds.to_table(filter="n % 4 = 3")
v = pa.FixedSizeListArray.from_arrays(pa.array([9.0] * 8 * len(old), pa.float32()), 8)
new = pa.table({
    "n": old["n"], "t": ["zeta word"] * len(old), "l": [["zeta"]] * len(old), "v": v,
})
ds.merge_insert("n").when_matched_update_all().execute(new)
ds.optimize.optimize_indices(**options)
result = None
"""


def _found_text(ds: lance.LanceDataset) -> list[int]:
    return sorted(ds.to_table(["n"], full_text_query="delta")["n"].to_pylist())


def _found_near(ds: lance.LanceDataset) -> list[int]:
    nearest = {"column": "v", "q": [0.0] * 8, "k": 50, "nprobes": 2}
    return sorted(ds.to_table(["n"], nearest=nearest)["n"].to_pylist())


def _found_near_exactly(ds: lance.LanceDataset) -> list[int]:
    nearest = {"column": "v", "q": [0.0] * 8, "k": 50, "use_index": False}
    return sorted(ds.to_table(["n"], nearest=nearest)["n"].to_pylist())


def _no_rows(ds: lance.LanceDataset) -> list[int]:
    return []


RANKED: dict[str, tuple[str, Callable[..., list[int]], Callable[..., list[int]]]] = {
    "INVERTED": ("t", _found_text, _no_rows),
    "IVF_FLAT": ("v", _found_near, _found_near_exactly),
}


@pytest.mark.parametrize("options", [{}, {"num_indices_to_merge": 2}], ids=["all", "two"])
@pytest.mark.parametrize("kind", RANKED)
def test_ranked_searches_find_no_old_values_that_the_old_release_left(
    kind: str, options: dict[str, int], officials: OfficialPool, tmp_table: str
) -> None:
    column, find, find_exactly = RANKED[kind]
    ds = _ranked(tmp_table)
    if kind == "INVERTED":
        ds.create_scalar_index(column, kind)
    else:
        ds.create_index(column, kind, num_partitions=2)
    officials(OLD).run(tmp_table, REPLACE, options=options)
    ds = lance.dataset(tmp_table)
    assert find(ds) == find_exactly(ds)
    ds.insert(ds.to_table(limit=1).set_column(0, "n", [[999]]))
    ds.optimize.optimize_indices()
    assert find(ds) == find_exactly(ds)
    plan = ds.scanner(["n"], full_text_query="zeta").explain_plan() if kind == "INVERTED" else ""
    assert "FlatMatchQuery" not in plan


def test_a_refresh_of_ours_removes_old_labels(officials: OfficialPool, tmp_table: str) -> None:
    ds = _ranked(tmp_table)
    ds.create_scalar_index("l", "LABEL_LIST")
    officials(OLD).run(tmp_table, REPLACE, options={})
    ds = lance.dataset(tmp_table)
    ds.insert(ds.to_table(limit=1).set_column(0, "n", [[999]]))
    ds.optimize.optimize_indices()
    found = "result = lance.dataset(uri).to_table(filter=\"array_has(l, 'delta')\").num_rows"
    assert [officials(release).run(tmp_table, found) for release in (OLD, NEW)] == [0, 0]
