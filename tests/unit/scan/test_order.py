"""Sorted scans and top-k for all types."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lancelake.commit.snapshot import Snapshot
from lancelake.format.frozen import FrozenMap
from lancelake.scan.planner import plan
from lancelake.scan.request import Ordering, ScanRequest
from lancelake.scan.stream import run
from tests.support.read_tables import Varied, open_source


def sorted_keys(table: Varied, *keys: tuple[str, bool, bool]) -> list[int]:
    """Sort with Python: (column, ascending, nulls first)."""
    rows = table.rows.to_pylist()
    for column, ascending, nulls_first in reversed(keys):
        present = [row for row in rows if row[column] is not None]
        absent = [row for row in rows if row[column] is None]
        present.sort(key=lambda row, name=column: row[name], reverse=not ascending)
        rows = absent + present if nulls_first else present + absent
    return [row["key"] for row in rows]


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("nulls_first", [True, False])
@pytest.mark.parametrize("column", ["a", "text", "n"])
def test_nulls_come_where_they_are_asked_for(
    source: Snapshot, table: Varied, column: str, ascending: bool, nulls_first: bool
) -> None:
    keys = ((column, ascending, nulls_first), ("key", True, False))
    order = tuple(Ordering(column=c, ascending=a, nulls_first=n) for c, a, n in keys)
    found = run(plan(source, ScanRequest(columns=("key",), order_by=order))).read_all()
    assert found["key"].to_pylist() == sorted_keys(table, *keys)


@pytest.mark.parametrize(
    ("limit", "offset"), [(5, None), (None, 5), (5, 5), (0, None), (5, 100), (100, 20)]
)
def test_limit_and_offset_count_sorted_rows(
    source: Snapshot, table: Varied, limit: int | None, offset: int | None
) -> None:
    order = (Ordering(column="key", ascending=False),)
    request = ScanRequest(columns=("key",), order_by=order, limit=limit, offset=offset)
    start = offset or 0
    stop = None if limit is None else start + limit
    expected = sorted(table.keys, reverse=True)[start:stop]
    assert run(plan(source, request)).read_all()["key"].to_pylist() == expected


def test_filter_is_applied_before_sorting(source: Snapshot) -> None:
    order = (Ordering(column="key", ascending=False),)
    request = ScanRequest(columns=("key",), order_by=order, filter="key < 5")
    assert run(plan(source, request)).read_all()["key"].to_pylist() == [4, 3, 2, 0]


def test_computed_columns_can_be_sorted_by_another(source: Snapshot) -> None:
    request = ScanRequest(
        columns=FrozenMap({"twice": "key * 2"}),
        order_by=(Ordering(column="key", ascending=False),),
        limit=2,
    )
    assert run(plan(source, request)).read_all().to_pydict() == {"twice": [72, 68]}


def test_rows_without_columns_keep_their_number(source: Snapshot, table: Varied) -> None:
    request = ScanRequest(columns=(), order_by=(Ordering(column="a"),))
    assert run(plan(source, request)).read_all().num_rows == table.rows.num_rows


def test_row_ids_stay_with_their_rows(source: Snapshot) -> None:
    request = ScanRequest(columns=("key", "_rowid"))
    unsorted = run(plan(source, request)).read_all().to_pylist()
    order = (Ordering(column="a"), Ordering(column="key"))
    found = run(plan(source, ScanRequest(columns=("key", "_rowid"), order_by=order))).read_all()
    assert sorted(found.to_pylist(), key=lambda row: row["key"]) == unsorted


def test_columns_of_every_type_are_carried_along(tmp_path: Path) -> None:
    columns = {
        "k": pa.array([2, 1, 3], pa.int64()),
        "d": pa.array(["x", None, "y"]).dictionary_encode(),
        "l": pa.array([[1], None, []], pa.list_(pa.int8())),
        "v": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2)),
        "st": pa.array([{"q": 1}, None, {"q": None}], pa.struct([("q", pa.int8())])),
        "b": pa.array([b"\x00", None, b""], pa.large_binary()),
        "t": pa.array([1, None, 3], pa.timestamp("ms", "Europe/Berlin")),
        "j": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None, "[]"])),
        'it\'s "odd"': pa.array([1, 2, 3]),
    }
    table = pa.table(columns)
    lance.write_dataset(table, tmp_path / "t", data_storage_version="2.1")
    scan = plan(open_source(tmp_path / "t"), ScanRequest(order_by=(Ordering(column="k"),)))
    found = run(scan).read_all()
    assert found.schema.equals(scan.schema, check_metadata=True)
    assert found.to_pylist() == [table.to_pylist()[i] for i in (1, 0, 2)]


def test_column_of_an_odd_name_can_be_sorted_by(tmp_path: Path) -> None:
    name = 'it\'s `odd` "here"'
    lance.write_dataset(pa.table({name: [2, 3, 1]}), tmp_path / "t")
    request = ScanRequest(order_by=(Ordering(column=name),))
    found = run(plan(open_source(tmp_path / "t"), request)).read_all()
    assert found.to_pydict() == {name: [1, 2, 3]}
