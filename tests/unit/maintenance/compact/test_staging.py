"""Many small files are read as one, with the same rows."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.maintenance.compact.options import CompactionSettings
from lancelake.maintenance.compact.plan import plan
from lancelake.maintenance.compact.task import staged
from tests.support.compare import assert_same_table
from tests.support.open_files import open_removed_files

FRAGMENTS = 20
LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> lance.LanceDataset:
    """Return many small fragments with stable row ids; rows of the tenth are deleted."""
    ids = pa.array(range(FRAGMENTS * 10), pa.int64())
    table = pa.table(
        {
            "id": ids,
            "word": [f"w{i % 7}" if i % 3 else None for i in range(len(ids))],
            "list": pa.array([[i] * (i % 4) for i in range(len(ids))]),
        }
    )
    found = lance.write_dataset(
        table,
        tmp_path / "t.lance",
        max_rows_per_file=10,
        data_storage_version=request.param,
        enable_stable_row_ids=True,
    )
    found.delete("id IN (91, 95)")
    return found


def units(dataset: lance.LanceDataset) -> list[int]:
    (task,) = plan(dataset._snapshot, CompactionSettings()).tasks
    with staged(task.source, task.fragments, task.write) as found:
        return [fragment.physical_rows or 0 for _, fragment in found]


def test_small_neighbours_are_read_together(dataset: lance.LanceDataset) -> None:
    expected = [90, 10, 100] if dataset.data_storage_version != "2.0" else [10] * FRAGMENTS
    assert units(dataset) == expected


def test_rows_and_their_lineage_are_the_same(dataset: lance.LanceDataset) -> None:
    dataset.update({"word": "'new'"}, where="id = 150")
    columns = [*dataset.schema.names, *LINEAGE]
    before = dataset.to_table(columns=columns).sort_by("id")
    dataset.optimize.compact_files()
    assert_same_table(dataset.to_table(columns=columns).sort_by("id"), before)


def test_nothing_is_left_behind(
    dataset: lance.LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    dataset.optimize.compact_files()
    assert [path for path in folder.iterdir() if "compact" in path.name] == []
    gc.collect()
    assert open_removed_files(folder) == []
