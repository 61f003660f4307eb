"""Joined columns are assigned to the matching rows, with any memory limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, LanceTableError, SchemaMismatchError
from lancelake.storage.location import Location
from lancelake.table.columns.join import FileRows, JoinKey, MemoryRows, join_rows, merge_columns

DATA = pa.table({"id": [9, 3, 3, 77, 0], "v": ["nine", "first", "last", "none", "zero"]})
EXPECTED = ["zero", None, "last", None, None, None, None, None, "nine"]


@pytest.mark.parametrize("memory_bytes", [1 << 20, 1], ids=["memory", "file"])
def test_values_go_where_the_keys_are_equal(memory_bytes: int, base: Snapshot) -> None:
    key = JoinKey(left="id", right="id")
    made = merge_columns(base, DATA.to_reader(2), key, memory_bytes=memory_bytes)
    found = lance.LanceDataset._of(made, None).to_table(columns=["v"])
    assert found.column("v").to_pylist() == EXPECTED


def test_keys_may_have_different_names(dataset: lance.LanceDataset) -> None:
    dataset.merge(DATA.rename_columns(["number", "v"]), "id", "number")
    assert dataset.to_table(columns=["v"]).column("v").to_pylist() == EXPECTED
    assert "number" not in dataset.schema.names


def test_a_member_may_be_the_key(dataset: lance.LanceDataset) -> None:
    dataset.merge(DATA, "pair.x", "id")
    assert dataset.to_table(columns=["v"]).column("v").to_pylist() == EXPECTED


def test_the_row_address_may_be_the_key(dataset: lance.LanceDataset) -> None:
    data = pa.table({"_rowaddr": pa.array([0, (2 << 32) + 1], pa.uint64()), "v": ["a", "b"]})
    dataset.merge(data, "_rowaddr")
    found = dataset.to_table(columns=["v"]).column("v").to_pylist()
    assert (found[0], found[-1], found[1:-1]) == ("a", "b", [None] * 7)


def test_nulls_are_equal_to_each_other(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"k": [1, None]}), tmp_path)
    dataset.merge(pa.table({"k": [None, 2], "v": ["null", "two"]}), "k")
    assert dataset.to_table().column("v").to_pylist() == [None, "null"]


def test_data_without_rows_brings_nulls(dataset: lance.LanceDataset) -> None:
    dataset.merge(DATA.slice(0, 0), "id")
    assert dataset.to_table(columns=["v"]).column("v").null_count == 9


def test_an_empty_table_gets_the_column(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"id": pa.array([], pa.int64())}), tmp_path)
    dataset.merge(DATA, "id")
    assert dataset.to_table().schema.names == ["id", "v"]


@pytest.mark.parametrize(
    ("data", "keys", "error"),
    [
        (DATA, ("nothing", "id"), InvalidRequestError),
        (DATA, ("id", "nothing"), InvalidRequestError),
        (DATA.rename_columns(["id", "name"]), ("id", "id"), InvalidRequestError),
        (DATA.select(["id"]), ("id", "id"), InvalidRequestError),
        (DATA, ("name", "id"), SchemaMismatchError),
        (
            pa.table(
                {"id": [1], "v": [1]},
                schema=pa.schema([("id", pa.int64()), pa.field("v", pa.int64(), nullable=False)]),
            ),
            ("id", "id"),
            SchemaMismatchError,
        ),
    ],
    ids=["left", "right", "both sides", "only a key", "types", "not null"],
)
def test_nothing_is_committed_for(
    data: pa.Table, keys: Any, error: type[LanceTableError], dataset: lance.LanceDataset
) -> None:
    before = dataset.latest_version
    with pytest.raises(error):
        dataset.merge(data, *keys)
    assert dataset.latest_version == before


@given(rows=st.lists(st.integers(-1, 19), max_size=30))
def test_rows_in_a_file_are_those_in_memory(
    rows: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = pa.table(
        {"key": range(20), "v": [[str(i), None] for i in range(20)], "key_": range(20)}
    )
    scratch = Location.parse(tmp_path_factory.mktemp("scratch"))
    few = join_rows(table.to_reader(3), "key", scratch=scratch)
    many = join_rows(table.to_reader(3), "key", scratch=scratch, memory_bytes=1)
    assert (type(few), type(many)) == (MemoryRows, FileRows)
    numbers = np.array(rows, dtype=np.int64)
    assert few.take(numbers).to_pylist() == many.take(numbers).to_pylist()
    assert [k for c in few.key_chunks() for k in c] == [k for c in many.key_chunks() for k in c]
