"""Columns are renamed, cast, and made non-nullable if they have no nulls."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import (
    InvalidNameError,
    InvalidRequestError,
    LanceTableError,
    SchemaMismatchError,
    UnsupportedError,
)


def test_a_column_is_renamed_without_data(dataset: lance.LanceDataset) -> None:
    dataset.alter_columns({"path": "name", "name": "called"})
    assert dataset.to_table(columns=["called"]).column(0).to_pylist()[0] == "n0"
    assert [len(f.data_files()) for f in dataset.get_fragments()] == [1, 1, 1]


def test_a_member_is_renamed(dataset: lance.LanceDataset) -> None:
    dataset.alter_columns({"path": "pair.x", "name": "z"})
    assert dataset.to_table().column("pair").to_pylist()[0] == {"z": 0, "y": "y0"}


def test_two_columns_change_names(dataset: lance.LanceDataset) -> None:
    dataset.alter_columns({"path": "id", "name": "name"}, {"path": "name", "name": "id"})
    assert dataset.to_table().column("name").to_pylist()[0] == 0


def test_a_cast_writes_one_file_per_fragment(dataset: lance.LanceDataset) -> None:
    dataset.alter_columns({"path": "id", "data_type": pa.int8()})
    assert dataset.to_table().column("id").type == pa.int8()
    assert [len(f.data_files()) for f in dataset.get_fragments()] == [2, 2, 2]


def test_a_member_is_cast(dataset: lance.LanceDataset) -> None:
    dataset.alter_columns({"path": "pair.x", "data_type": pa.int16()})
    values = dataset.to_table().column("pair").to_pylist()
    assert values[:3] == [{"x": 0, "y": "y0"}, {"x": 1, "y": "y1"}, {"x": 3, "y": None}]


def test_a_column_keeps_its_place_when_it_is_cast(dataset: lance.LanceDataset) -> None:
    dataset.alter_columns({"path": "name", "data_type": pa.large_string(), "name": "text"})
    assert dataset.schema.names == ["id", "text", "pair"]


def test_deleted_rows_need_not_fit_the_type(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"big": "CASE WHEN id = 9 THEN 1000 ELSE id END"})
    dataset.delete("id = 9")
    dataset.alter_columns({"path": "big", "data_type": pa.int8()})
    assert dataset.to_table().column("big").to_pylist()[-1] == 8


@pytest.mark.parametrize(
    ("values", "to", "expected"),
    [
        (pa.array([1.1, None]), pa.float32(), [pytest.approx(1.1), None]),
        (pa.array(["a", "b"]), pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
        (pa.array(["a", "b"]).dictionary_encode(), pa.string(), ["a", "b"]),
        (pa.array([[1], None]), pa.large_list(pa.int8()), [[1], None]),
        (pa.array([[1.0], [2.0]]), pa.list_(pa.float32(), 1), [[1.0], [2.0]]),
        (pa.array([Decimal("1.25")]), pa.decimal128(5, 1), [Decimal("1.3")]),
        (pa.array([1_500], pa.timestamp("ms")), pa.timestamp("s"), None),
        (pa.array([b"a"]), pa.large_binary(), [b"a"]),
    ],
    ids=str,
)
def test_values_are_cast(values: Any, to: pa.DataType, expected: Any, tmp_path: Any) -> None:
    dataset = lance.write_dataset(pa.table({"v": values}), tmp_path)
    dataset.alter_columns({"path": "v", "data_type": to})
    found = dataset.to_table().column("v")
    assert found.type == to
    assert expected is None or found.to_pylist() == expected


def test_items_of_a_list_are_cast(tmp_path: Any) -> None:
    dataset = lance.write_dataset(pa.table({"v": [[1, 2], None, []]}), tmp_path)
    dataset.alter_columns({"path": "v.item", "data_type": pa.int8()})
    assert dataset.to_table().column("v").to_pylist() == [[1, 2], None, []]
    assert dataset.schema.field("v").type.value_type == pa.int8()


def test_an_index_on_a_cast_column_is_dropped(official_14: Any, tmp_path: Any) -> None:
    official_14.write(tmp_path / "t", pa.table({"a": [1, 2], "b": [3, 4]}))
    official_14.create_scalar_index(tmp_path / "t", "a")
    official_14.create_scalar_index(tmp_path / "t", "b")
    dataset = lance.dataset(tmp_path / "t")
    dataset.alter_columns({"path": "a", "data_type": pa.int8()})
    assert [index["fields"] for index in dataset.list_indices()] == [["b"]]


def test_an_index_on_a_renamed_column_stays(official_14: Any, tmp_path: Any) -> None:
    official_14.write(tmp_path / "t", pa.table({"a": [1, 2]}))
    official_14.create_scalar_index(tmp_path / "t", "a")
    dataset = lance.dataset(tmp_path / "t")
    dataset.alter_columns({"path": "a", "name": "z"})
    assert [index["fields"] for index in dataset.list_indices()] == [["z"]]


def test_a_column_without_nulls_may_forbid_them(dataset: lance.LanceDataset) -> None:
    dataset.alter_columns({"path": "id", "nullable": False}, {"path": "pair.x", "nullable": False})
    assert not dataset.schema.field("id").nullable
    dataset.alter_columns({"path": "id", "nullable": True})
    assert dataset.schema.field("id").nullable


def test_deleted_nulls_do_not_count(dataset: lance.LanceDataset) -> None:
    dataset.delete("id = 3")
    dataset.alter_columns({"path": "pair.y", "nullable": False})
    assert not dataset.schema.field("pair").type.field("y").nullable


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([{"path": "nothing", "name": "x"}], InvalidRequestError),
        ([{"path": "id", "name": "name"}], InvalidNameError),
        ([{"path": "pair.x", "name": "y"}], InvalidNameError),
        ([{"path": "id", "name": "a.b"}], InvalidNameError),
        ([{"path": "pair.y", "nullable": False}], SchemaMismatchError),
        ([{"path": "id", "data_type": pa.string()}], UnsupportedError),
        ([{"path": "name", "data_type": pa.binary()}], UnsupportedError),
        ([{"path": "pair", "data_type": pa.int8()}], UnsupportedError),
        ([{"path": "id"}], InvalidRequestError),
        ([{"name": "x"}], InvalidRequestError),
        ([{"path": "id", "other": 1}], InvalidRequestError),
    ],
    ids=str,
)
def test_nothing_is_committed_for(
    changes: list[Any], error: type[LanceTableError], dataset: lance.LanceDataset
) -> None:
    before = dataset.latest_version
    with pytest.raises(error):
        dataset.alter_columns(*changes)
    assert dataset.latest_version == before


def test_a_value_that_does_not_fit_is_named(tmp_path: Any) -> None:
    dataset = lance.write_dataset(pa.table({"v": [1, 300]}), tmp_path)
    with pytest.raises(SchemaMismatchError, match="column v"):
        dataset.alter_columns({"path": "v", "data_type": pa.int8()})
    assert dataset.latest_version == 1


def test_casts_are_refused_with_the_words_of_pylance(dataset: lance.LanceDataset) -> None:
    dataset.update({"id": "1024"}, where="id = 1")
    with pytest.raises(SchemaMismatchError, match="Can't cast value 1024 to type Int8"):
        dataset.alter_columns({"path": "id", "data_type": pa.int8()})
    with pytest.raises(UnsupportedError, match='Cannot cast column "id" from Int64 to Utf8'):
        dataset.alter_columns({"path": "id", "data_type": pa.string()})
