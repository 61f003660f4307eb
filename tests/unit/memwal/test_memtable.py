from __future__ import annotations

from lancelake.format.arrow_schema import from_arrow
from lancelake.format.file_version import FileVersion
from lancelake.memwal.memtable import MemTable, key_values
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


def test_keys_of_several_columns_are_tuples() -> None:
    two = RowShape(table=SHAPE.table, data_version=FileVersion.V2_1, keys=("id", "name"))
    assert key_values(two, rows((1, "a")).to_batches()[0]) == [(1, "a")]
