"""Batches limited in bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError

ROWS = pa.table({"a": pa.array(range(1000), pa.int64())})


@pytest.fixture
def dataset() -> lance.LanceDataset:
    return lance.write_dataset(ROWS, "memory://batches")


def test_batches_have_at_most_so_many_bytes(dataset: lance.LanceDataset) -> None:
    batches = list(dataset.to_batches(batch_size_bytes=800))
    assert max(batch.nbytes for batch in batches) <= 800
    assert pa.Table.from_batches(batches) == ROWS


def test_a_row_larger_than_the_limit_is_a_batch(dataset: lance.LanceDataset) -> None:
    assert {b.num_rows for b in dataset.to_batches(batch_size_bytes=1)} == {1}


def test_the_result_of_a_query_is_limited_too(dataset: lance.LanceDataset) -> None:
    query = dataset.sql("SELECT a FROM dataset").batch_size_bytes(800).build()
    assert max(batch.nbytes for batch in query.to_batch_records()) <= 800


@pytest.mark.parametrize("size", [0, -1])
def test_a_limit_that_is_not_positive_is_refused(dataset: lance.LanceDataset, size: int) -> None:
    with pytest.raises(InvalidRequestError, match="batch_size_bytes must be greater than 0"):
        dataset.scanner(batch_size_bytes=size)
