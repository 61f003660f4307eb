"""Hugging Face data sets are written as tables, and tables read as data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake
from lancelake.errors import InvalidRequestError
from lancelake.pylance import hf
from tests.libraries import recipes

datasets = pytest.importorskip("datasets", reason="datasets is not installed: make test-libraries")


@pytest.fixture
def labelled() -> Any:
    features = datasets.Features(
        {
            "id": datasets.Value("int64"),
            "label": datasets.ClassLabel(names=["cat", "dog"]),
            "vector": datasets.List(datasets.Value("float32"), length=2),
        }
    )
    columns = {"id": [1, 2, 3], "label": [0, 1, 0], "vector": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}
    return datasets.Dataset.from_dict(columns, features=features)


def test_rows_and_features_come_back(labelled: Any, tmp_path: Path):
    table = lancelake.write_dataset(labelled, tmp_path / "t.lance")
    back = hf.to_hf_dataset(table)
    assert back.features == labelled.features
    assert back.to_list() == labelled.to_list()


def test_only_selected_rows_are_written(labelled: Any, tmp_path: Path):
    chosen = labelled.filter(lambda row: row["id"] != 2).select([1, 0])
    table = lancelake.write_dataset(chosen, tmp_path / "t.lance")
    assert table.to_table()["id"].to_pylist() == [3, 1]


def test_streams_are_written(labelled: Any, tmp_path: Path):
    table = lancelake.write_dataset(labelled.to_iterable_dataset(), tmp_path / "t.lance")
    assert table.to_table()["id"].to_pylist() == [1, 2, 3]


def test_a_stream_without_features_is_written(tmp_path: Path):
    stream = datasets.IterableDataset.from_generator(lambda: iter([{"a": 1}, {"a": 2}]))
    assert lancelake.write_dataset(stream, tmp_path / "t.lance").count_rows() == 2


def test_splits_are_refused(labelled: Any, tmp_path: Path):
    splits = datasets.DatasetDict({"train": labelled, "test": labelled})
    with pytest.raises(InvalidRequestError, match="train, test"):
        lancelake.write_dataset(splits, tmp_path / "t.lance")


def test_columns_and_filter_apply(labelled: Any, tmp_path: Path):
    table = lancelake.write_dataset(labelled, tmp_path / "t.lance")
    assert hf.to_hf_dataset(table, ["id"], "label = 0").to_list() == [{"id": 1}, {"id": 3}]


def test_fragments_are_shards_of_a_stream(labelled: Any, tmp_path: Path):
    table = lancelake.write_dataset(labelled, tmp_path / "t.lance", max_rows_per_file=1)
    stream = hf.to_hf_iterable_dataset(table, ["id"])
    assert stream.num_shards == 3
    assert list(stream) == [{"id": 1}, {"id": 2}, {"id": 3}]


def test_official_lance_writes_the_same(labelled: Any, tmp_path: Path):
    import lance as official

    ours = lancelake.write_dataset(labelled, tmp_path / "ours.lance")
    theirs = official.write_dataset(labelled, tmp_path / "theirs.lance")
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.to_table() == theirs.to_table()


def test_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert recipes.run("Hugging Face")["table"].count_rows() == 2


def test_a_column_that_is_no_feature_is_not_converted():
    assert (
        hf.HuggingFaceConverter({"info": {"features": {}}}).to_pytorch("a", pa.array([1])) is None
    )
