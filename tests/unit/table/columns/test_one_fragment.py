"""Columns of single fragments are added and changed for a later commit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, LanceTableError, SchemaMismatchError
from lancelake.pylance.udf import BatchUDF

Operation = lance.LanceOperation
CHANGED = pa.table({"id": [0, 3, 3, 77], "name": ["zero", "first", None, "none"]})


def merged(dataset: lance.LanceDataset, made: list[Any]) -> lance.LanceDataset:
    """Commit columns that were added fragment by fragment."""
    operation = Operation.Merge([fragment for fragment, _ in made], made[0][1])
    return lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def test_computed_columns(dataset: lance.LanceDataset) -> None:
    made = [f.merge_columns({"twice": "id * 2"}) for f in dataset.get_fragments()]
    found = merged(dataset, made).to_table(columns=["twice"]).column("twice")
    assert found.to_pylist() == [0, 2, 6, 8, 10, 12, 14, 16, 18]


def test_columns_of_a_function(dataset: lance.LanceDataset) -> None:
    made = [
        f.merge_columns(lambda batch: pa.record_batch({"n": batch.column("id")}), columns=["id"])
        for f in dataset.get_fragments()
    ]
    found = merged(dataset, made).to_table(columns=["n"]).column("n")
    assert found.to_pylist() == [0, 1, 3, 4, 5, 6, 7, 8, 9]


def test_columns_of_a_stream(dataset: lance.LanceDataset) -> None:
    made = [
        f.merge_columns(pa.table({"n": range(f.count_rows())})) for f in dataset.get_fragments()
    ]
    found = merged(dataset, made).to_table(columns=["n"]).column("n")
    assert found.to_pylist() == [0, 1, 2, 0, 1, 2, 3, 0, 1]


def test_joined_columns(dataset: lance.LanceDataset) -> None:
    data = pa.table({"id": [9, 0], "v": ["nine", "zero"]})
    made = [f.merge(data, "id") for f in dataset.get_fragments()]
    found = merged(dataset, made).to_table(columns=["v"]).column("v")
    assert found.to_pylist() == ["zero", *[None] * 7, "nine"]


def test_nothing_is_committed_by_itself(dataset: lance.LanceDataset) -> None:
    before = dataset.latest_version
    dataset.get_fragments()[0].merge_columns({"twice": "id * 2"})
    assert dataset.latest_version == before


def test_a_checkpoint_is_refused(dataset: lance.LanceDataset, tmp_path: Any) -> None:
    udf = BatchUDF(lambda batch: batch, pa.schema([("n", pa.int64())]), tmp_path / "checkpoint")
    with pytest.raises(InvalidRequestError):
        dataset.get_fragments()[0].merge_columns(udf)


def test_matched_rows_change_and_others_stay(dataset: lance.LanceDataset) -> None:
    fragment = dataset.get_fragments()[0]
    made, fields = fragment.update_columns(CHANGED, "id")
    operation = Operation.Update(
        updated_fragments=[made], fields_modified=fields, update_mode="rewrite_columns"
    )
    after = lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)
    found = after.to_table(columns=["name"]).column("name").to_pylist()
    assert found[:4] == ["zero", "n1", None, "n4"]


def test_replaced_values_are_dead_in_the_old_file(dataset: lance.LanceDataset) -> None:
    made, fields = dataset.get_fragments()[0].update_columns(CHANGED, "id")
    old, new = made.files
    assert fields == new.fields == [1]
    assert old.fields[:2] == [0, -2]


def test_the_rows_are_reported_by_offset(dataset: lance.LanceDataset) -> None:
    (*_, rows) = dataset.get_fragments()[0].update_columns(CHANGED, "id", with_offsets=True)
    assert list(BitMap.deserialize(rows)) == [0, 3]


def test_whole_structs_change(dataset: lance.LanceDataset) -> None:
    data = pa.table({"id": [1], "pair": [{"x": 100, "y": "new"}]})
    made, fields = dataset.get_fragments()[0].update_columns(data, "id")
    operation = Operation.Update(updated_fragments=[made], fields_modified=fields)
    after = lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)
    assert after.to_table().column("pair").to_pylist()[:2] == [
        {"x": 0, "y": "y0"},
        {"x": 100, "y": "new"},
    ]


@pytest.mark.parametrize(
    ("data", "keys", "error"),
    [
        (pa.table({"id": [1], "nothing": [1]}), ("id",), InvalidRequestError),
        (pa.table({"id": [1], "name": [1]}), ("id",), SchemaMismatchError),
        (pa.table({"id": [1]}), ("id",), InvalidRequestError),
        (pa.table({"id": [1], "name": ["a"]}), ("nothing", "id"), InvalidRequestError),
        (pa.table({"id": [1], "name": ["a"]}), ("id", "nothing"), InvalidRequestError),
        (pa.table({"id": [1], "pair": [{"x": 1}]}), ("id",), InvalidRequestError),
    ],
    ids=["column", "type", "only a key", "left", "right", "part of a struct"],
)
def test_data_that_does_not_fit_is_refused(
    data: pa.Table, keys: Any, error: type[LanceTableError], dataset: lance.LanceDataset
) -> None:
    with pytest.raises(error):
        dataset.get_fragments()[0].update_columns(data, *keys)
