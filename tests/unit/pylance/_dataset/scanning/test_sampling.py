"""Counts, first rows and samples of a dataset."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest

import lancelake.pylance as lance
from lancelake.errors import (
    InvalidExpressionError,
)
from lancelake.pylance import LanceDataset
from tests.support.compare import assert_same_table
from tests.support.read_tables import Varied, varied


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Varied:
    """Return a table of 27 rows in five fragments."""
    return varied(tmp_path_factory.mktemp("dataset") / "v.lance")


@pytest.fixture(scope="module")
def ds(table: Varied) -> LanceDataset:
    """Return the table, open."""
    return lance.dataset(table.uri)


@pytest.mark.parametrize("rows", [0, 1, 27])
def test_sample_has_different_rows_of_the_table(ds: LanceDataset, table: Varied, rows: int) -> None:
    keys = ds.sample(rows, columns=["key"])["key"].to_pylist()
    assert len(keys) == len(set(keys)) == rows
    assert set(keys) <= set(table.keys)


def test_sample_may_keep_the_order_of_the_table(ds: LanceDataset) -> None:
    keys = ds.sample(10, columns=["key"], randomize_order=False)["key"].to_pylist()
    assert keys == sorted(keys)


@pytest.mark.parametrize("rows", [28, -1])
def test_sample_is_no_larger_than_the_table(ds: LanceDataset, rows: int) -> None:
    with pytest.raises(ValueError, match="Sample larger than population or is negative"):
        ds.sample(rows)


@pytest.mark.parametrize(("rows", "found"), [(0, 0), (3, 3), (27, 27), (100, 27)])
def test_head_has_the_first_rows(ds: LanceDataset, table: Varied, rows: int, found: int) -> None:
    assert_same_table(ds.head(rows), table.rows.slice(0, found))


def test_head_takes_what_a_scan_takes(ds: LanceDataset) -> None:
    assert ds.head(2, columns=["key"], filter="key > 5").to_pydict() == {"key": [6, 7]}


@pytest.mark.parametrize("filter", ["key < 10", pc.field("key") < 10])
def test_rows_are_counted_by_filter(ds: LanceDataset, filter: Any) -> None:
    assert ds.count_rows(filter) == ds.count_rows(filter=filter) == 7


def test_wrong_filter_is_refused(ds: LanceDataset) -> None:
    with pytest.raises(InvalidExpressionError, match="No field named nosuch"):
        ds.count_rows("nosuch = 1")
