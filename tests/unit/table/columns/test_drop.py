"""Columns are dropped and reordered without rewriting data."""

from __future__ import annotations

import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError


def test_a_column_is_dropped(dataset: lance.LanceDataset) -> None:
    dataset.drop_columns(["name"])
    assert dataset.to_table().schema.names == ["id", "pair"]


def test_a_member_is_dropped(dataset: lance.LanceDataset) -> None:
    dataset.drop_columns(["pair.x"])
    assert dataset.to_table().column("pair").to_pylist()[0] == {"y": "y0"}


def test_a_struct_without_members_goes_too(dataset: lance.LanceDataset) -> None:
    dataset.drop_columns(["pair.x", "pair.y"])
    assert dataset.schema.names == ["id", "name"]


def test_no_data_file_is_written(dataset: lance.LanceDataset) -> None:
    before = [f.data_files() for f in dataset.get_fragments()]
    dataset.drop_columns(["name"])
    assert [f.data_files() for f in dataset.get_fragments()] == before


def test_a_file_whose_columns_are_all_gone_is_left_out(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"more": "id"})
    dataset.drop_columns(["more"])
    assert [len(f.data_files()) for f in dataset.get_fragments()] == [1, 1, 1]


@pytest.mark.parametrize(
    "columns", [["nothing"], ["pair.z"], ["id.x"], ["ID"], ["id", "name", "pair"]]
)
def test_nothing_is_committed_for(columns: list[str], dataset: lance.LanceDataset) -> None:
    before = dataset.latest_version
    with pytest.raises(InvalidRequestError):
        dataset.drop_columns(columns)
    assert dataset.latest_version == before


def test_columns_come_in_the_order_asked_for(dataset: lance.LanceDataset) -> None:
    rows = dataset.to_table().to_pylist()
    dataset.reorder_columns(["pair", "id"])
    assert dataset.to_table().schema.names == ["pair", "id", "name"]
    assert dataset.to_table().to_pylist() == rows


@pytest.mark.parametrize("names", [["nothing"], ["id", "id"], ["pair.x"]])
def test_an_order_needs_columns(names: list[str], dataset: lance.LanceDataset) -> None:
    with pytest.raises(InvalidRequestError):
        dataset.reorder_columns(names)


def test_a_drop_lands_beside_another_change_of_the_schema(dataset: lance.LanceDataset) -> None:
    stale = lance.dataset(dataset.uri)
    dataset.add_columns({"more": "id"})
    stale.drop_columns(["name"])
    assert stale.schema.names == ["id", "pair", "more"]
