"""Rows that were updated are checked again where an index may have their old values."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lancelake.pylance as lance
from lancelake.expr.condition import Column
from lancelake.scan.index_search.sources import IndexSource, IndexSources
from lancelake.scan.index_search.updated_rows import uncertain_rows
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.storage.location import Location
from lancelake.table.open import Latest, open_snapshot


def _table(root: Path, kind: str, *, stable: bool = True) -> lance.LanceDataset:
    """Return a table of which rows 2 and 3 were updated before the index was built."""
    rows = pa.table({"a": [0, 1, 2, 3, 4, 5], "b": [0, 0, 0, 1, 1, 1]})
    made = lance.write_dataset(rows, root, max_rows_per_file=3, enable_stable_row_ids=stable)
    made.update({"b": "7"}, where="a IN (2, 3)")
    made.create_scalar_index("b", kind)
    return made


def _found(root: Path) -> list[int]:
    base = open_snapshot(Location.parse(root), Latest())
    sources: tuple[IndexSource, ...] = IndexSources(base).of(Column(path=("b",), dtype=pa.int64()))
    (source,) = sources
    return [int(row) for row in uncertain_rows(base, source.segment, source.coverage).to_array()]


def test_rows_that_were_updated_are_uncertain(tmp_path: Path) -> None:
    _table(tmp_path, "BITMAP")
    assert _found(tmp_path) == [2 << 32, (2 << 32) + 1]


def test_rows_that_were_only_inserted_are_certain(tmp_path: Path) -> None:
    rows = pa.table({"a": [0, 1], "b": [0, 0]})
    made = lance.write_dataset(rows, tmp_path, enable_stable_row_ids=True)
    made.create_scalar_index("b", "BITMAP")
    assert _found(tmp_path) == []


def test_an_index_with_one_value_for_each_row_is_certain(tmp_path: Path) -> None:
    _table(tmp_path, "BTREE")
    assert _found(tmp_path) == []


def test_addresses_are_certain(tmp_path: Path) -> None:
    _table(tmp_path, "BITMAP", stable=False)
    assert _found(tmp_path) == []


def test_a_fragment_of_such_rows_is_read_and_checked(tmp_path: Path) -> None:
    _table(tmp_path, "BITMAP")
    base = open_snapshot(Location.parse(tmp_path), Latest())
    found = plan(base, ScanRequest(columns=("a",), filter="b = 7")).index_search
    assert found is not None
    assert 2 not in found.found
    assert 2 not in found.empty


def test_other_fragments_need_no_check(tmp_path: Path) -> None:
    _table(tmp_path, "BITMAP")
    base = open_snapshot(Location.parse(tmp_path), Latest())
    found = plan(base, ScanRequest(columns=("a",), filter="b = 0")).index_search
    assert found is not None
    assert {number: rows.is_exact for number, rows in found.found.items()} == {0: True}
