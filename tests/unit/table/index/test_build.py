"""Building an index: what it covers, what it replaces, what it stores."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import AlreadyExistsError, UnsupportedError
from lancelake.index.kinds import KINDS
from lancelake.index.vector.kind import VECTOR
from lancelake.pylance.indices import IndexConfig
from lancelake.pylance.progress import IndexProgress
from tests.support.scalar_index_tables import FILTERS, IndexedTable, entries, rows

COLUMNS = {
    "BTREE": "i",
    "BITMAP": "k",
    "LABEL_LIST": "l",
    "ZONEMAP": "i",
    "BLOOMFILTER": "i",
    "NGRAM": "s",
    "INVERTED": "s",
}
OF_ADDRESSES = ("ZONEMAP", "BLOOMFILTER")
EXACT = ("BTREE", "BITMAP", "LABEL_LIST")


def test_every_kind_has_a_column_here() -> None:
    assert COLUMNS.keys() == {kind.name for kind in KINDS if kind is not VECTOR}


@pytest.mark.parametrize("kind", EXACT)
def test_an_index_answers_as_a_scan_does(table: lance.LanceDataset, kind: str) -> None:
    column = COLUMNS[kind]
    table.create_scalar_index(column, kind)

    found = IndexedTable(table.uri)
    assert [w for text in FILTERS[column] if (w := found.difference(text, column))] == []


@pytest.mark.parametrize("kind", COLUMNS)
def test_an_index_covers_all_fragments_of_the_version_it_was_built_from(
    tmp_table: str, kind: str
) -> None:
    table = lance.write_dataset(rows(300), tmp_table, max_rows_per_file=100)
    table.create_scalar_index(COLUMNS[kind], kind)

    (entry,) = entries(tmp_table)
    assert set(entry.fragments() or ()) == {0, 1, 2}
    assert entry.dataset_version == 1
    assert table.version == 2


@pytest.mark.parametrize("kind", COLUMNS)
def test_an_entry_lists_every_file_with_its_size(tmp_table: str, kind: str) -> None:
    table = lance.write_dataset(rows(300), tmp_table)
    table.create_scalar_index(COLUMNS[kind], kind)

    (entry,) = entries(tmp_table)
    folder = Path(tmp_table, "_indices", str(entry.uuid))
    listed = {file.path: file.size_bytes for file in entry.files}
    assert listed == {path.name: path.stat().st_size for path in folder.iterdir()}


@pytest.mark.parametrize("kind", OF_ADDRESSES)
def test_zones_are_not_built_where_older_releases_would_lose_rows(
    tmp_table: str, kind: str
) -> None:
    table = lance.write_dataset(rows(10), tmp_table, enable_stable_row_ids=True)

    with pytest.raises(UnsupportedError, match="stable row ids"):
        table.create_scalar_index("i", kind)


@pytest.mark.parametrize("kind", COLUMNS)
def test_an_untrained_index_covers_nothing(tmp_table: str, kind: str) -> None:
    table = lance.write_dataset(rows(10), tmp_table)
    table.create_scalar_index(COLUMNS[kind], kind, train=False)

    (index,) = table.describe_indices()
    assert index.num_rows_indexed == 0
    assert index.segments[0].fragment_ids == set()


def test_an_index_is_replaced_under_its_name(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE")
    table.create_scalar_index("i", "BITMAP")

    assert [i.index_type for i in table.describe_indices()] == ["Bitmap"]


def test_an_index_is_not_replaced_without_leave(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE")

    with pytest.raises(RuntimeError, match="'i_idx' already exists"):
        table.create_scalar_index("i", "BTREE", replace=False)


def test_an_index_of_another_column_is_not_replaced(table: lance.LanceDataset) -> None:
    table.create_scalar_index("i", "BTREE", name="x")

    with pytest.raises(AlreadyExistsError, match="with different fields"):
        table.create_scalar_index("k", "BTREE", name="x")


def test_an_index_of_a_nested_column_is_named_after_its_path(tmp_table: str) -> None:
    data = pa.table({"a": [{"b": 1, "c.d": 2}, {"b": 3, "c.d": 4}, None]})
    table = lance.write_dataset(data, tmp_table)
    table.create_scalar_index("a.b", "BTREE")
    table.create_scalar_index("a.`c.d`", "BITMAP")

    names = {i.name: i.field_names for i in table.describe_indices()}
    assert names == {"a.b_idx": ["a.b"], "a.`c.d`_idx": ["a.`c.d`"]}


def test_a_default_name_that_another_column_has_is_numbered(tmp_table: str) -> None:
    table = lance.write_dataset(pa.table({"a": [1], "b": [2]}), tmp_table)
    table.create_scalar_index("a", "BTREE", name="b_idx")
    table.create_scalar_index("b", "BTREE")

    assert [i.name for i in table.describe_indices()] == ["b_idx", "b_idx_2"]


def test_parameters_come_with_a_config(tmp_table: str) -> None:
    table = lance.write_dataset(rows(300), tmp_table)
    table.create_scalar_index("i", IndexConfig("zonemap", {"rows_per_zone": 100}))

    (segment,) = table.index_statistics("i_idx")["segments"]
    assert segment == {"num_zones": 3, "rows_per_zone": 100}


def test_an_index_of_a_table_without_rows_is_empty(tmp_table: str) -> None:
    table = lance.write_dataset(rows(0), tmp_table)
    table.create_scalar_index("i", "BTREE")

    assert table.index_statistics("i_idx")["num_indexed_rows"] == 0


def test_an_index_built_from_an_old_version_does_not_cover_what_came_later(tmp_table: str) -> None:
    old = lance.write_dataset(rows(10), tmp_table)
    lance.write_dataset(rows(10), tmp_table, mode="append")
    old.create_scalar_index("i", "BTREE")

    assert lance.dataset(tmp_table).index_statistics("i_idx")["num_unindexed_rows"] == 10


def test_a_build_reports_how_many_rows_it_has_read(table: lance.LanceDataset) -> None:
    told: list[IndexProgress] = []
    table.create_scalar_index("i", "BTREE", progress_callback=told.append)

    assert [told[0].event, told[-1].event] == ["start", "complete"]
    assert told[-1].completed == told[-1].total == table.count_rows()
