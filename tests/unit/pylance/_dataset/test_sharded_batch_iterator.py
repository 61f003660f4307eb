"""Batches of one of several workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance._dataset.sharded_batch_iterator import ShardedBatchIterator


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(pa.table({"a": range(100)}), tmp_path / "t", max_rows_per_file=25)


def values(dataset: Any, rank: int, **options: Any) -> list[int]:
    with pytest.warns(UserWarning, match="deprecated"):
        shard = ShardedBatchIterator(dataset, rank, 2, **options)
    return [value for batch in shard for value in batch["a"].to_pylist()]


def test_a_worker_reads_every_other_fragment(dataset: lance.LanceDataset) -> None:
    assert values(dataset, 1, batch_size=10) == [*range(25, 50), *range(75, 100)]


def test_a_worker_reads_every_other_range(dataset: lance.LanceDataset) -> None:
    found = values(dataset.uri, 1, batch_size=30, granularity="batch")
    assert found == [*range(30, 60), *range(90, 100)]


def test_another_granularity_is_refused(dataset: lance.LanceDataset) -> None:
    with pytest.raises(ValueError, match="Unrecognized granularity: row"):
        values(dataset, 0, granularity="row")
