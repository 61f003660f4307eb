"""Every option is either applied or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, UnsupportedError

ROWS = pa.table({"a": range(100)})


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(ROWS, tmp_path / "t", data_storage_version="2.0")


@pytest.mark.parametrize(
    "call",
    [
        lambda ds: lance.LanceDataset(ds.uri, bogus=1),
        lambda ds: ds.take([1], bogus=1),
        lambda ds: ds.sample(1, bogus=1),
        lambda ds: ds._take_rows([1], bogus=1),
        lambda ds: ds.read_blobs("a", indices=[0], bogus=1),
        lambda ds: ds.read_blob_ranges("a", [], selector="ids", bogus=1),
        lambda ds: ds.shallow_clone(f"{ds.uri}-clone", 1, bogus=1),
        lambda ds: ds.deep_clone(f"{ds.uri}-clone", 1, bogus=1),
        lambda ds: ds.optimize.optimize_indices(bogus=1),
        lambda ds: ds.count_rows(bogus=1),
        lambda ds: ds.head(1, bogus=1),
        lambda ds: ds.scanner(bogus=1),
        lambda ds: ds.scanner(to_scanner=1),
        lambda ds: ds.insert(ROWS, bogus=1),
        lambda ds: lance.write_dataset(ROWS, ds, mode="append", bogus=1),
    ],
)
def test_a_keyword_that_nothing_knows_is_refused(
    dataset: lance.LanceDataset, call: Callable[[lance.LanceDataset], Any]
) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        call(dataset)


@pytest.mark.parametrize("name", ["bogus", "to_scanner", "ds", "_with", "apply_defaults"])
def test_a_scan_option_that_nothing_knows_is_refused(
    dataset: lance.LanceDataset, name: str
) -> None:
    opened = lance.dataset(dataset.uri, default_scan_options={name: 1})
    with pytest.raises(InvalidRequestError, match="Unknown scan option"):
        opened.to_table()
    with pytest.raises(InvalidRequestError, match="Unknown scan option"):
        dataset.get_fragments()[0].scanner(**{name: 1})


@pytest.mark.parametrize(
    "call",
    [
        lambda ds: ds._take_rows([0], ignore_deletions=True),
        lambda ds: ds.create_branch("b", storage_options={"region": "x"}),
        lambda ds: lance.dataset(ds.uri, read_params={"validate_on_decode": True}),
        lambda ds: lance.LanceDataset(ds.uri, serialized_manifest=b"x"),
    ],
)
def test_an_option_that_is_not_supported_is_refused(
    dataset: lance.LanceDataset, call: Callable[[lance.LanceDataset], Any]
) -> None:
    with pytest.raises(UnsupportedError):
        call(dataset)


@pytest.mark.parametrize(
    "options",
    [
        {"enable_stable_row_ids": True},
        {"auto_cleanup_options": {"interval": 3, "older_than_seconds": 5}},
    ],
)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_what_only_a_new_table_can_have_is_refused_for_an_existing_one(
    dataset: lance.LanceDataset, options: dict[str, Any], mode: str
) -> None:
    with pytest.raises(InvalidRequestError):
        lance.write_dataset(ROWS, dataset, mode=mode, **options)


def test_an_option_of_cleanup_that_nothing_knows_is_refused(tmp_path: Path) -> None:
    options: Any = {"interval": 3, "older_than": 5}
    with pytest.raises(InvalidRequestError, match="older_than"):
        lance.write_dataset(ROWS, tmp_path / "t", auto_cleanup_options=options)


@pytest.mark.parametrize("version", ["2.1", "2.2", "legacy"])
def test_rows_in_another_file_version_are_not_appended(
    dataset: lance.LanceDataset, version: str
) -> None:
    with pytest.raises(InvalidRequestError, match=r"format version 2\.0"):
        lance.write_dataset(ROWS, dataset, mode="append", data_storage_version=version)
    same = lance.write_dataset(ROWS, dataset, mode="append", data_storage_version="2.0")
    assert same.count_rows() == 200


def test_the_environment_says_how_many_rows_a_batch_has(
    dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", "30")
    assert [b.num_rows for b in dataset.to_batches()] == [30, 30, 30, 10]
    assert [b.num_rows for b in dataset.to_batches(batch_size=50)] == [50, 50]
    monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", "many")
    with pytest.raises(InvalidRequestError, match="LANCE_DEFAULT_BATCH_SIZE"):
        dataset.to_table()


@pytest.mark.parametrize(
    ("option", "meant"),
    [("aws_regoin", "aws_region"), ("acess_key_id", "access_key_id"), ("alow_http", "allow_http")],
)
def test_a_misspelt_storage_option_is_refused_with_a_proposal(
    dataset: lance.LanceDataset, option: str, meant: str
) -> None:
    with pytest.raises(InvalidRequestError, match=meant):
        lance.dataset(dataset.uri, storage_options={option: "x"})
    with pytest.raises(InvalidRequestError, match=meant):
        lance.write_dataset(ROWS, dataset.uri, mode="append", storage_options={option: "x"})
