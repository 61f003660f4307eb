from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import FileVersion
from lancelake.memwal import generations
from lancelake.memwal.generations import MemTable, key_values, last_of_each_key
from lancelake.memwal.shape import RowShape
from tests.support.memwal_tables import SCHEMA, keys, rows

SHAPE = RowShape(table=from_arrow(SCHEMA), data_version=FileVersion.V2_1, keys=("id",))


def test_the_newest_row_of_each_key_is_kept() -> None:
    table = MemTable(SHAPE, 1)
    table.add(SHAPE.upserts(rows((1, "a"), (2, "a"), (1, "b"))), 1)
    table.add(SHAPE.tombstones(keys(2)), 2)
    found = table.newest().to_pylist()
    assert [(r["id"], r["name"], r["_tombstone"]) for r in found] == [
        (1, "b", False),
        (2, None, True),
    ]
    assert (table.num_rows, table.num_batches, table.last_position) == (4, 2, 2)


def test_a_copy_is_not_changed_by_later_writes() -> None:
    table = MemTable(SHAPE, 1)
    table.add(SHAPE.upserts(rows((1, "a"))), 1)
    copy = table.copy()
    table.add(SHAPE.upserts(rows((1, "b"), (2, "b"))), 2)
    assert copy.newest().column("name").to_pylist() == ["a"]


def test_lookups_find_the_newest_row_before_and_after_more_writes() -> None:
    table = MemTable(SHAPE, 1)
    table.add(SHAPE.upserts(rows((1, "a"), (2, "a"), (1, "b"))), 1)
    assert table.find([1, 3]).column("name").to_pylist() == ["b"]
    copy = table.copy()
    table.add(SHAPE.upserts(rows((1, "c"), (3, "c"))), 2)
    assert table.find([1, 2, 3]).column("name").to_pylist() == ["a", "c", "c"]
    assert copy.find([1, 3]).column("name").to_pylist() == ["b"]


def test_a_write_indexes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    table = MemTable(SHAPE, 1)
    with monkeypatch.context() as patch:
        patch.setattr(generations, "key_values", None)
        table.add(SHAPE.upserts(rows((1, "a"))), 1)
        assert table.newest().num_rows == 1
    assert table.find([1]).num_rows == 1


@pytest.mark.parametrize(
    "dtype",
    [
        pa.int8(),
        pa.uint64(),
        pa.bool_(),
        pa.utf8(),
        pa.large_utf8(),
        pa.binary(),
        pa.large_binary(),
    ],
    ids=str,
)
def test_the_last_row_of_keys_of_each_type_is_found(dtype: pa.DataType) -> None:
    values = [0, 1, 0] if pa.types.is_integer(dtype) else ["a", "b", "a"]
    key = pa.array([v == "a" for v in values] if pa.types.is_boolean(dtype) else values, dtype)
    found = last_of_each_key(pa.table({"k": key, "n": [1, 2, 3]}), ["k"])
    assert found.column("n").to_pylist() == [2, 3]


def test_the_last_row_of_keys_of_several_columns_is_found() -> None:
    table = pa.table({"k": [1, 1, 1], "j": ["a", "b", "a"], "n": [1, 2, 3]})
    assert last_of_each_key(table, ["k", "j"]).column("n").to_pylist() == [2, 3]


def test_keys_of_several_columns_are_tuples() -> None:
    two = RowShape(table=SHAPE.table, data_version=FileVersion.V2_1, keys=("id", "name"))
    assert key_values(two, rows((1, "a")).to_batches()[0]) == [(1, "a")]
