"""Statistics of a scan reach the callback after the last row."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance import ScanStatistics


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    table = pa.table({"a": np.arange(20_000), "b": np.arange(20_000) * 0.5})
    return lance.write_dataset(table, str(tmp_path / "t"), max_rows_per_file=10_000)


def test_the_callback_is_called_once_for_each_run(dataset: lance.LanceDataset) -> None:
    seen: list[ScanStatistics] = []
    scanner = dataset.scanner(columns=["a"], scan_stats_callback=seen.append)
    assert seen == []
    scanner.to_table()
    assert len(seen) == 1
    assert sum(batch.num_rows for batch in scanner.to_reader()) == 20_000
    first, second = seen
    assert first.all_counts["output_rows"] == second.all_counts["output_rows"] == 20_000
    assert first.requests == second.requests == 2
    assert first.bytes_read > 0


def test_a_count_is_reported_too(dataset: lance.LanceDataset) -> None:
    seen: list[ScanStatistics] = []
    assert dataset.scanner(filter="b < 5", scan_stats_callback=seen.append).count_rows() == 10
    assert seen[0].all_counts["rows_scanned"] == 20_000


def test_an_index_reads_less(dataset: lance.LanceDataset) -> None:
    seen: list[ScanStatistics] = []
    dataset.create_scalar_index("a", "BTREE")
    for use in (True, False):
        dataset.scanner(
            filter="a = 7", use_scalar_index=use, scan_stats_callback=seen.append
        ).to_table()
    indexed, scanned = seen
    assert indexed.all_counts["fragments_scanned"] == 1
    assert indexed.all_counts["rows_scanned"] < scanned.all_counts["rows_scanned"]
    assert indexed.indices_loaded == 1
    assert indexed.parts_loaded > 0
    assert indexed.index_cache_misses > 0
    assert (scanned.indices_loaded, scanned.index_cache_hits) == (0, 0)
    assert indexed.all_counts["bytes_read_is_limit"] == 1


def test_a_searched_index_is_cached(dataset: lance.LanceDataset) -> None:
    seen: list[ScanStatistics] = []
    dataset.create_scalar_index("a", "BTREE")
    for _ in range(2):
        dataset.scanner(filter="a = 7", scan_stats_callback=seen.append).to_table()
    assert (seen[1].parts_loaded, seen[1].index_cache_misses) == (0, 0)
    assert seen[1].index_cache_hits > 0


def test_an_error_of_the_callback_is_logged(
    dataset: lance.LanceDataset, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: ScanStatistics) -> None:
        raise KeyError("boom")

    with caplog.at_level(logging.ERROR, logger="pylance"):
        assert dataset.scanner(scan_stats_callback=fail).to_table().num_rows == 20_000
    assert "callback" in caplog.text
