"""Rows that were updated are checked again where an index may have their old values."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.expr.condition import Column
from lancelake.index.scalar.btree.kind import BTREE
from lancelake.index.stored_segment import StoredIndices
from lancelake.scan.index_search.sources import (
    IndexSource,
    IndexSources,
    ranked_coverage,
    uncertain_rows,
)
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.storage.location import Location
from tests.support.index_tables import add_index


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
    return [int(row) for row in uncertain_rows(base, source.coverage).to_array()]


def test_rows_that_were_updated_are_uncertain(tmp_path: Path) -> None:
    _table(tmp_path, "BITMAP")
    assert _found(tmp_path) == [2 << 32, (2 << 32) + 1]


def test_rows_that_were_only_inserted_are_certain(tmp_path: Path) -> None:
    rows = pa.table({"a": [0, 1], "b": [0, 0]})
    made = lance.write_dataset(rows, tmp_path, enable_stable_row_ids=True)
    made.create_scalar_index("b", "BITMAP")
    assert _found(tmp_path) == []


def test_addresses_in_a_table_with_stable_row_ids_are_certain(tmp_path: Path) -> None:
    _table(tmp_path, "BTREE")
    assert _found(tmp_path) == []


def test_a_btree_of_stable_row_ids_is_not_certain(tmp_path: Path) -> None:
    rows = pa.table({"a": [0, 1, 2, 3, 4, 5], "b": [0, 0, 0, 1, 1, 1]})
    made = lance.write_dataset(rows, tmp_path, max_rows_per_file=3, enable_stable_row_ids=True)
    made.update({"b": "7"}, where="a IN (2, 3)")
    add_index(str(tmp_path), BTREE, "b")
    assert _found(tmp_path) == [2 << 32, (2 << 32) + 1]


class _Ranked:
    """A segment that may have rows twice."""

    def __init__(self, *, is_twice: bool) -> None:
        self._is_twice = is_twice

    def has_rows_twice(self) -> bool:
        return self._is_twice


@pytest.mark.parametrize(("is_twice", "left"), [(False, [0, 1, 2]), (True, [0, 1])])
def test_a_ranked_search_leaves_fragments_with_old_values_to_a_scan(
    tmp_path: Path, is_twice: bool, left: list[int]
) -> None:
    _table(tmp_path, "BITMAP")
    base = open_snapshot(Location.parse(tmp_path), Latest())
    (segment,) = StoredIndices(base).segments("b_idx")
    ranked = _Ranked(is_twice=is_twice)
    found = ranked_coverage(base, ranked, segment.coverage)  # type: ignore[arg-type]  # a part
    assert list(found.fragments) == left


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
