"""Tests of the I/O statistics of a dataset."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    lance.write_dataset(pa.table({"a": range(1000)}), tmp_path / "t")
    return lance.dataset(tmp_path / "t")


def test_a_snapshot_does_not_reset_the_counts(table: lance.LanceDataset) -> None:
    table.to_table()
    found = table.io_stats_snapshot()
    assert found.read_iops > 0
    assert found.read_bytes > 0
    assert table.io_stats_snapshot() == found


def test_counts_start_again_after_each_increment(table: lance.LanceDataset) -> None:
    table.to_table()
    assert table.io_stats_incremental().read_bytes > 0
    none = table.io_stats_incremental()
    assert (none.read_iops, none.read_bytes, none.write_iops, none.written_bytes) == (0, 0, 0, 0)


def test_writes_are_counted_with_the_data_file(table: lance.LanceDataset) -> None:
    table.io_stats_incremental()
    table.insert(pa.table({"a": range(1000)}))
    written = table.io_stats_incremental()
    (file,) = table.get_fragments()[1].data_files()
    assert written.write_iops >= 2
    assert written.written_bytes > file.file_size_bytes


def test_objects_of_one_table_count_by_themselves(table: lance.LanceDataset) -> None:
    other = lance.dataset(table.uri)
    table.to_table()
    table.io_stats_incremental()
    assert other.io_stats_snapshot().read_iops > 0


def test_statistics_are_formatted_as_pylance_formats_them(table: lance.LanceDataset) -> None:
    table.io_stats_incremental()
    expected = "IOStats(read_iops=0, read_bytes=0, write_iops=0, write_bytes=0)"
    assert repr(table.io_stats_snapshot()) == expected
