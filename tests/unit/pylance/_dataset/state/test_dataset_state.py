"""Copies and pickles of a dataset."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import lance as official
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from tests.support.compare import assert_same_table
from tests.support.read_tables import versioned


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of four versions, with tags and a branch."""
    path = tmp_path_factory.mktemp("dataset") / "t.lance"
    versioned(path)
    return path


@pytest.mark.parametrize("version", [1, ("feat/x", None), "aside"])
def test_dataset_survives_pickling(root: Path, version: Any) -> None:
    found = lance.dataset(root, version, default_scan_options={"with_row_id": True})
    again = pickle.loads(pickle.dumps(found))
    assert (again.version, again.uri, again.schema) == (found.version, found.uri, found.schema)
    assert_same_table(again.to_table(), found.to_table())


def test_pickled_version_stays_when_the_table_moves_on(tmp_path: Path) -> None:
    official.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    data = pickle.dumps(lance.dataset(tmp_path / "t"))
    official.write_dataset(pa.table({"a": [2]}), tmp_path / "t", mode="append")
    assert pickle.loads(data).count_rows() == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copy_is_the_same_version(root: Path, copied: Any) -> None:
    found = lance.dataset(root, 2)
    assert_same_table(copied(found).to_table(), found.to_table())
