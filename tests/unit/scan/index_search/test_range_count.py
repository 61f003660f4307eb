"""Ranges of a completely indexed table are counted without looking at rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import DamagedIndexError
from lancelake.index.scalar.btree.kind import BTREE
from lancelake.scan.stream import count_by_index
from tests.support.index_tables import add_index

VALUES = [None if n % 10 == 0 else n % 50 for n in range(400)]


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    """Return a table of four fragments with an index of a column with nulls and repeats."""
    table = pa.table({"n": range(400), "v": VALUES, "w": [float(n) for n in range(400)]})
    made = lance.write_dataset(table, str(tmp_path / "t"), max_rows_per_file=100)
    made.create_scalar_index("v", "BTREE")
    return made


def counted(ds: lance.LanceDataset, text: str) -> int | None:
    """Return the count of an index, after checking it."""
    found = count_by_index(ds._snapshot, text)
    expected = ds.scanner(columns=["n"], filter=text, use_scalar_index=False).to_table().num_rows
    assert ds.count_rows(text) == expected
    assert found in (None, expected)
    return found


@pytest.mark.parametrize(
    "text",
    ["v >= 10 AND v < 20", "v = 7", "v > 45", "v < -1", "v BETWEEN 3 AND 4", "v >= 0", "7 > v"],
)
def test_a_range_is_counted(dataset: lance.LanceDataset, text: str) -> None:
    assert counted(dataset, text) is not None


@pytest.mark.parametrize("text", ["v IN (1, 2)", "v < 5 AND w < 9", "w < 9", "v < 5 OR v > 7"])
def test_other_conditions_look_at_rows(dataset: lance.LanceDataset, text: str) -> None:
    assert counted(dataset, text) is None


def test_deleted_rows_are_looked_at(dataset: lance.LanceDataset) -> None:
    dataset.delete("n = 7")
    assert counted(dataset, "v = 7") is None


def test_rows_that_are_not_indexed_are_looked_at(dataset: lance.LanceDataset) -> None:
    dataset.insert(pa.table({"n": [1], "v": [7], "w": [0.5]}))
    assert counted(dataset, "v = 7") is None
    dataset.optimize.optimize_indices()
    counted(dataset, "v = 7")


def test_rows_of_a_removed_fragment_do_not_count(dataset: lance.LanceDataset) -> None:
    dataset.delete("n < 100")
    dataset.insert(pa.table({"n": range(100), "v": [7] * 100, "w": [0.5] * 100}))
    assert counted(dataset, "v = 7") is None


def test_moved_rows_are_looked_at(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files(defer_index_remap=True)
    assert counted(dataset, "v = 7") is None


def test_compacted_rows_are_counted_by_their_new_addresses(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files()
    assert counted(dataset, "v = 7") is not None


def test_stable_row_ids_are_looked_at(tmp_path: Path) -> None:
    table = pa.table({"n": range(50), "v": range(50)})
    made = lance.write_dataset(table, str(tmp_path / "t"), enable_stable_row_ids=True)
    add_index(made.uri, BTREE, "v")
    assert counted(lance.dataset(made.uri), "v < 9") is None


def test_addresses_of_a_table_with_stable_row_ids_are_counted(tmp_path: Path) -> None:
    table = pa.table({"n": range(50), "v": range(50)})
    made = lance.write_dataset(table, str(tmp_path / "t"), enable_stable_row_ids=True)
    made.create_scalar_index("v", "BTREE")
    assert counted(made, "v < 9") == 9


def test_a_damaged_file_is_named(dataset: lance.LanceDataset) -> None:
    for file in Path(dataset.uri).glob("_indices/*/page_data.lance"):
        file.write_bytes(b"damaged")
    with pytest.raises(DamagedIndexError, match="v_idx"):
        lance.dataset(dataset.uri).count_rows("v = 7")
