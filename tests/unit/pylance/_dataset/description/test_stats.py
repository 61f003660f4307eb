"""Statistics have the same form as in pylance."""

from __future__ import annotations

from pathlib import Path

import lance as official
import pytest

import lancelake.pylance as lance
from tests.support.read_tables import Varied, varied


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Varied:
    """Return a table with deletions and several files."""
    return varied(tmp_path_factory.mktemp("stats") / "t.lance")


@pytest.mark.parametrize("rows", [1, 5, 1024])
def test_counts_are_those_of_pylance(table: Varied, rows: int) -> None:
    ours, theirs = lance.dataset(table.uri).stats, official.dataset(table.uri).stats
    assert ours.dataset_stats(rows) == theirs.dataset_stats(rows)


def test_small_means_less_than_1024_rows_by_default(table: Varied) -> None:
    assert lance.dataset(table.uri).stats.dataset_stats()["num_small_files"] == 5


def test_sizes_are_those_of_pylance(table: Varied) -> None:
    ours, theirs = (m.dataset(table.uri).stats.data_stats().fields for m in (lance, official))
    assert [(f.id, f.bytes_on_disk) for f in ours] == [(f.id, f.bytes_on_disk) for f in theirs]


def test_legacy_files_have_no_sizes(tmp_path: Path) -> None:
    import pyarrow as pa

    official.write_dataset(pa.table({"a": [1]}), tmp_path / "t", data_storage_version="legacy")
    (field,) = lance.dataset(tmp_path / "t").stats.data_stats().fields
    assert (field.id, field.bytes_on_disk) == (0, 0)
