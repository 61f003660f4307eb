"""Blobs in data frames."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance

VALUES = [b"one", None, b"three"]


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    rows = pa.table({"id": [1, 2, 3], "blob": lance.blob_array(VALUES)})
    return lance.write_dataset(rows, tmp_path, data_storage_version="2.2")


def test_blobs_are_files_by_default(dataset: lance.LanceDataset) -> None:
    frame = dataset.to_pandas(filter="id != 2", columns=["blob", "id"])
    assert list(frame.columns) == ["blob", "id"]
    assert [file.read() for file in frame["blob"]] == [b"one", b"three"]


def test_null_blobs_are_none(dataset: lance.LanceDataset) -> None:
    assert dataset.to_pandas()["blob"][1] is None


def test_blobs_are_bytes_on_request(dataset: lance.LanceDataset) -> None:
    assert dataset.to_pandas(blob_mode="bytes")["blob"].tolist() == VALUES


def test_blobs_are_descriptors_on_request(dataset: lance.LanceDataset) -> None:
    assert "kind" in dataset.to_pandas(blob_mode="descriptions")["blob"][0]


def test_fragments_have_the_same_modes(dataset: lance.LanceDataset) -> None:
    frame = dataset.get_fragments()[0].to_pandas(["blob"], "id = 3", blob_mode="bytes")
    assert frame["blob"].tolist() == [b"three"]


def test_an_unknown_mode_is_refused(dataset: lance.LanceDataset) -> None:
    with pytest.raises(ValueError, match="blob_mode must be one of"):
        dataset.to_pandas(blob_mode="x")


@pytest.fixture
def nested(tmp_path: Path) -> lance.LanceDataset:
    blobs = lance.blob_array([b"one", None, b"x" * 300_000, b"in a null struct"])
    structs = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3, 4]), blobs],
        fields=[pa.field("n", pa.int64()), lance.blob_field("b")],
        mask=pa.array([False, False, False, True]),
    )
    rows = pa.table({"id": [1, 2, 3, 4], "s": structs})
    return lance.write_dataset(
        rows, tmp_path / "n", data_storage_version="2.2", max_rows_per_file=2
    )


def test_blobs_in_structs_are_stored_and_compacted(nested: lance.LanceDataset) -> None:
    nested.optimize.compact_files()
    found = nested.to_pandas(blob_mode="bytes")["s"].tolist()
    assert [value and value["b"] for value in found] == [b"one", None, b"x" * 300_000, None]


def test_blobs_in_structs_are_files(nested: lance.LanceDataset) -> None:
    found = nested.to_pandas()["s"].tolist()
    assert [value and value["n"] for value in found] == [1, 2, 3, None]
    assert found[0]["b"].read() == b"one"
    assert [value and value["b"] for value in found[1::2]] == [None, None]


def test_a_blob_asked_for_by_its_path_is_a_file(nested: lance.LanceDataset) -> None:
    frame = nested.to_pandas(columns=["s.b", "id"], filter="id = 1")
    assert frame["s.b"][0].read() == b"one"
