"""Samples, and the division of a table between processes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.sampler import (
    FullScanSampler,
    ShardedBatchSampler,
    ShardedFixedBatchSampler,
    ShardedFragmentSampler,
    maybe_sample,
    reservoir_sampling,
)

ROWS = pa.table({"a": range(100)})


@pytest.fixture
def dataset() -> lance.LanceDataset:
    return lance.write_dataset(ROWS, "memory://samples", max_rows_per_file=10)


def _values(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return list(chain.from_iterable(batch["a"].to_pylist() for batch in batches))


@pytest.mark.parametrize("n", [5, 30, 99])
@pytest.mark.parametrize("filt", [None, "a >= 0"])
def test_a_sample_has_so_many_different_rows(
    dataset: lance.LanceDataset, n: int, filt: str | None
) -> None:
    found = _values(maybe_sample(dataset, n, "a", batch_size=8, max_takes=7, filt=filt))
    assert len(found) == len(set(found)) == n


def test_a_sample_larger_than_the_table_is_the_table(dataset: lance.LanceDataset) -> None:
    assert _values(maybe_sample(dataset, 1000, ["a"])) == list(range(100))


def test_a_filtered_sample_matches_its_filter(dataset: lance.LanceDataset) -> None:
    assert set(_values(maybe_sample(dataset, 50, "a", filt="a < 4"))) == {0, 1, 2, 3}


def test_a_stream_is_sampled() -> None:
    assert len(set(reservoir_sampling(range(1000), 10))) == 10
    assert reservoir_sampling(range(3), 10) == [0, 1, 2]


@pytest.mark.parametrize("filter", [None, "a != 50"])
@pytest.mark.parametrize("randomize", [False, True])
@pytest.mark.parametrize("kind", [ShardedBatchSampler, ShardedFragmentSampler])
def test_processes_share_all_rows(
    dataset: lance.LanceDataset,
    kind: type[ShardedBatchSampler | ShardedFragmentSampler],
    randomize: bool,
    filter: str | None,
) -> None:
    samplers = [kind(rank, 3, randomize=randomize) for rank in range(3)]
    shards = [_values(sampler(dataset, batch_size=7, filter=filter)) for sampler in samplers]
    expected = [value for value in range(100) if filter is None or value != 50]
    assert sorted(chain.from_iterable(shards)) == expected
    assert all(shards)


def test_a_full_scan_is_in_order(dataset: lance.LanceDataset) -> None:
    assert _values(FullScanSampler()(dataset, batch_size=3)) == list(range(100))


def test_row_numbers_are_divided_into_batches() -> None:
    samplers = [ShardedFixedBatchSampler(r, 3, True, 1, 4, 10) for r in range(3)]
    assert [len(sampler) for sampler in samplers] == [1, 1, 1]
    rows = [row for sampler in samplers for batch in sampler for row in batch]
    assert sorted(rows) == list(range(10))
