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
