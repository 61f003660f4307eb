"""Deletion of rows of a fragment without a commit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import CorruptTableError
from lancelake.pylance.fragment import FragmentMetadata

ROWS = pa.table({"a": range(6)})


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    """Return two fragments of three rows, of which the first is deleted."""
    made = lance.write_dataset(ROWS, tmp_path, max_rows_per_file=3)
    made.delete("a = 0")
    return made


def _deleted(metadata: FragmentMetadata | None) -> int:
    assert metadata is not None
    return metadata.num_deletions


def test_deleted_rows_can_be_committed(dataset: lance.LanceDataset) -> None:
    updated = dataset.get_fragments()[0].delete("a = 1")
    removed = dataset.get_fragments()[1].delete("true")
    assert removed is None
    assert _deleted(updated) == 2
    operation = lance.LanceOperation.Delete([updated], [1], "a = 1 or a > 2")
    made = lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)
    assert made.to_table()["a"].to_pylist() == [2]
    assert dataset.count_rows() == 5


def test_a_predicate_without_rows_returns_the_fragment(dataset: lance.LanceDataset) -> None:
    fragment = dataset.get_fragments()[0]
    assert fragment.delete("a > 100") == fragment.metadata


def test_rows_are_deleted_by_offset(dataset: lance.LanceDataset) -> None:
    fragment = dataset.get_fragments()[0]
    assert _deleted(fragment.delete_rows([1, 1])) == 2
    assert _deleted(fragment.delete_rows([0])) == 1
    assert fragment.delete_rows([0, 1, 2]) is None
    assert fragment.delete_rows([]) == fragment.metadata


def test_an_offset_beyond_the_fragment_is_refused(dataset: lance.LanceDataset) -> None:
    with pytest.raises(ValueError, match="offset 7 is out of range for fragment 0 with 3 rows"):
        dataset.get_fragments()[0].delete_rows([7])


@pytest.mark.parametrize("offset", [-1, 1 << 40])
def test_an_offset_that_is_no_u32_is_refused(dataset: lance.LanceDataset, offset: int) -> None:
    with pytest.raises(OverflowError):
        dataset.get_fragments()[0].delete_rows([offset])


def test_an_unknown_column_is_an_os_error(dataset: lance.LanceDataset) -> None:
    with pytest.raises(OSError, match="nope"):
        dataset.get_fragments()[0].delete("nope = 1")


def test_only_the_damaged_fragment_fails_its_validation(
    dataset: lance.LanceDataset, tmp_path: Path
) -> None:
    first, second = dataset.get_fragments()
    (tmp_path / "data" / second.data_files()[0].path).unlink()
    first.validate()
    with pytest.raises(CorruptTableError):
        second.validate()
