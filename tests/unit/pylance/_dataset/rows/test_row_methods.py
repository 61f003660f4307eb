from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancelake.pylance as lance
from lancelake.errors import ContentionError

ROWS = pa.table({"id": pa.array(range(6), pa.int64()), "v": [f"v{i}" for i in range(6)]})


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(ROWS, tmp_path / "t", max_rows_per_file=3)


@pytest.mark.parametrize("predicate", ["id > 3", pc.field("id") > 3], ids=["sql", "pyarrow"])
def test_delete_counts_rows_and_moves_to_the_new_version(
    dataset: lance.LanceDataset, predicate: str | pc.Expression
) -> None:
    assert dataset.delete(predicate) == {"num_deleted_rows": 2}
    assert dataset.version == 2
    assert dataset.count_rows() == 4


@pytest.mark.parametrize("where", ["id < 2", pc.field("id") < 2], ids=["sql", "pyarrow"])
def test_update_counts_rows_and_moves_to_the_new_version(
    dataset: lance.LanceDataset, where: str | pc.Expression
) -> None:
    assert dataset.update({"v": "upper(v)"}, where) == {"num_rows_updated": 2}
    assert dataset.version == 2
    assert sorted(dataset.to_table()["v"].to_pylist())[:2] == ["V0", "V1"]


def test_truncating_leaves_the_schema(dataset: lance.LanceDataset) -> None:
    assert dataset.truncate_table() is None
    assert dataset.count_rows() == 0
    assert dataset.schema == ROWS.schema


def test_limits_on_doing_it_again_are_kept(dataset: lance.LanceDataset) -> None:
    lance.dataset(dataset.uri).update({"v": "'x'"}, where="id = 1")
    with pytest.raises(ContentionError):
        dataset.delete("id = 1", conflict_retries=0)
    with pytest.raises(ContentionError):
        dataset.update({"v": "'y'"}, "id = 1", retry_timeout=timedelta())
    with pytest.raises(ValueError, match="negative"):
        dataset.delete("id = 1", conflict_retries=-1)


def test_a_merge_without_columns_goes_by_the_primary_key(tmp_path: Path) -> None:
    key = pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"})
    table = pa.table([[1, 2], ["a", "b"]], schema=pa.schema([key, ("v", pa.string())]))
    dataset = lance.write_dataset(table, tmp_path / "t")
    stats = dataset.merge_insert().when_matched_update_all().execute(table.slice(1))
    assert stats["num_updated_rows"] == 1


def test_a_merge_without_any_key_is_refused(dataset: lance.LanceDataset) -> None:
    with pytest.raises(ValueError, match="requires join keys"):
        dataset.merge_insert()
