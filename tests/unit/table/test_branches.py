"""What becomes of a branch's files when it is removed, or was begun and never recorded?"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import AlreadyExistsError, RefNotFoundError

ROWS = pa.table({"a": [1]})


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(ROWS, str(tmp_path / "table.lance"))


def branch(table: lance.LanceDataset, name: str) -> lance.LanceDataset:
    return lance.dataset(table.uri).checkout_version((name, None))


def forget(table: lance.LanceDataset, name: str) -> None:
    """Remove the document of a branch and nothing else."""
    (path,) = Path(table.uri, "_refs", "branches").glob(f"{name}*.json")
    path.unlink()


def test_a_branch_below_another_keeps_its_files(table: lance.LanceDataset) -> None:
    table.create_branch("x")
    table.create_branch("x/y")
    table.branches.delete("x")
    assert branch(table, "x/y").to_table() == ROWS


def test_a_branch_that_was_begun_is_finished(table: lance.LanceDataset) -> None:
    table.create_branch("x")
    forget(table, "x")
    table.create_branch("x")
    assert branch(table, "x").to_table() == ROWS


def test_a_branch_begun_from_another_version_is_not_taken_over(table: lance.LanceDataset) -> None:
    table.create_branch("x")
    forget(table, "x")
    table.update_config({"a": "b"})
    with pytest.raises(AlreadyExistsError):
        table.create_branch("x")


def test_a_removal_that_stopped_is_finished(table: lance.LanceDataset) -> None:
    table.create_branch("x")
    forget(table, "x")
    table.branches.delete("x")
    table.update_config({"a": "b"})
    table.create_branch("x")
    assert branch(table, "x").version == 2


def test_a_branch_that_never_was_cannot_be_removed(table: lance.LanceDataset) -> None:
    with pytest.raises(RefNotFoundError):
        table.branches.delete("x")
