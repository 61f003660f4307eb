"""Rows are found together with their keys, where an index stores them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import DamagedIndexError
from lancelake.expr.condition import Column
from lancelake.format.row_address import row_addresses
from lancelake.index.order import KeyPoints, Positions, ordered_points
from lancelake.index.row_sets import U64Array
from lancelake.index.scalar.btree.kind import BTreeSegment
from lancelake.scan.index_search.search import KeyRows, rows_with_keys
from tests.support.searched_tables import add_segment

ID = Column(path=("id",), dtype=pa.int64())


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a table with each key twice, and three fragments of which two are indexed."""
    place = str(tmp_path / "t.lance")
    table = pa.table({"id": [*range(30), *range(30)]})
    lance.write_dataset(table, place, max_rows_per_file=20, enable_stable_row_ids=request.param)
    add_segment(place, "id", "BTREE", fragments={0, 1})
    return place


def found(uri: str, keys: list[int]) -> KeyRows:
    points, order = ordered_points(pa.array(keys, pa.int64()))
    known = rows_with_keys(lance.dataset(uri)._snapshot, ID, points)
    numbers = np.asarray(order)[known.points]
    return KeyRows(fragments=known.fragments, points=numbers, addresses=known.addresses)


def pairs(rows: KeyRows) -> set[tuple[int, int, int]]:
    """Return the number of the key, the fragment and the offset of each row."""
    places = (divmod(int(address), 1 << 32) for address in rows.addresses)
    return {(int(n), *place) for n, place in zip(rows.points, places, strict=True)}


def test_all_rows_of_a_key_are_found_in_indexed_fragments(uri: str) -> None:
    rows = found(uri, [25, 99, 3, 12])
    assert set(rows.fragments) == {0, 1}
    assert pairs(rows) == {(0, 1, 5), (2, 0, 3), (2, 1, 13), (3, 0, 12)}


def test_deleted_rows_are_left_out(uri: str) -> None:
    lance.dataset(uri).delete("id = 3 AND _rowid < 10")
    assert pairs(found(uri, [3])) == {(0, 1, 13)}


def test_updated_rows_are_not_those_of_their_old_key(uri: str) -> None:
    lance.dataset(uri).update({"id": "1000"}, "id = 12")
    rows = found(uri, [12, 13])
    assert pairs(rows) == {(1, 0, 13)}


def test_index_of_addresses_before_a_compaction_is_not_asked(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"id": range(40)}), tmp_path / "t", max_rows_per_file=20)
    made.create_scalar_index("id", "BTREE")
    made.optimize.compact_files(defer_index_remap=True)
    assert not found(str(tmp_path / "t"), [3]).fragments


def test_index_without_keys_is_not_asked(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"id": range(40)}), tmp_path / "t")
    made.create_scalar_index("id", "BITMAP")
    assert not found(str(tmp_path / "t"), [3]).fragments


@pytest.mark.parametrize("uri", [False], indirect=True, ids=["addresses"])
def test_row_beyond_its_fragment_is_damage(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_: BTreeSegment, wanted: KeyPoints) -> tuple[Positions, U64Array]:
        return np.zeros(1, dtype=np.int64), row_addresses(1, np.array([20], dtype=np.uint64))

    monkeypatch.setattr(BTreeSegment, "rows_at", wrong)
    with pytest.raises(DamagedIndexError, match="row 20 of fragment 1, which has 20"):
        found(uri, [3])


def test_row_with_two_keys_is_not_believed(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(_: BTreeSegment, wanted: KeyPoints) -> tuple[Positions, U64Array]:
        return np.arange(2), np.array([5, 5], dtype=np.uint64)

    monkeypatch.setattr(BTreeSegment, "rows_at", twice)
    assert not found(uri, [3, 4]).fragments
