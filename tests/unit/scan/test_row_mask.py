"""Scans of listed rows, and of all but listed rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.dataset import serialize_row_addrs

ROWS = pa.table({"a": range(10)})


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def dataset(tmp_path: Path, request: pytest.FixtureRequest) -> lance.LanceDataset:
    """Return two fragments of five rows, of which the second is deleted."""
    made = lance.write_dataset(
        ROWS, tmp_path, max_rows_per_file=5, enable_stable_row_ids=request.param
    )
    made.delete("a = 1")
    return made


def _ids(dataset: lance.LanceDataset, values: list[int]) -> bytes:
    rows = dataset.to_table(with_row_id=True)
    known = dict(zip(rows["a"].to_pylist(), rows["_rowid"].to_pylist(), strict=True))
    return serialize_row_addrs(known[value] for value in values)


def test_only_listed_rows_are_read(dataset: lance.LanceDataset) -> None:
    scan = dataset.scanner(row_addr_allowlist=_ids(dataset, [0, 3, 7]))
    assert scan.to_table()["a"].to_pylist() == [0, 3, 7]
    assert scan.count_rows() == 3


def test_listed_rows_are_left_out(dataset: lance.LanceDataset) -> None:
    scan = dataset.scanner(row_addr_blocklist=_ids(dataset, [0, 9]))
    assert scan.to_table()["a"].to_pylist() == [2, 3, 4, 5, 6, 7, 8]


def test_filter_offset_and_limit_apply_to_the_listed_rows(dataset: lance.LanceDataset) -> None:
    allowed = _ids(dataset, [0, 2, 3, 7, 8])
    scan = dataset.scanner(filter="a > 0", offset=1, limit=2, row_addr_allowlist=allowed)
    assert scan.to_table()["a"].to_pylist() == [3, 7]
    assert dataset.scanner(limit=2, row_addr_allowlist=allowed).count_rows() == 2


def test_both_lists_apply(dataset: lance.LanceDataset) -> None:
    scan = dataset.scanner(
        row_addr_allowlist=_ids(dataset, [0, 3]), row_addr_blocklist=_ids(dataset, [3])
    )
    assert scan.to_table()["a"].to_pylist() == [0]


def test_rows_that_do_not_exist_are_ignored(dataset: lance.LanceDataset) -> None:
    listed = serialize_row_addrs([1, 99, 99 << 32])
    assert dataset.scanner(row_addr_allowlist=listed).to_table().num_rows == 0


def test_filter_that_an_index_answers_applies_to_the_listed_rows(
    dataset: lance.LanceDataset,
) -> None:
    dataset.create_scalar_index("a", "BTREE")
    scan = dataset.scanner(filter="a >= 7", row_addr_allowlist=_ids(dataset, [0, 3, 7, 9]))
    assert scan.to_table()["a"].to_pylist() == [7, 9]
    assert dataset.scanner(
        filter="a < 3", row_addr_blocklist=_ids(dataset, [0])
    ).count_rows() == len([2])
