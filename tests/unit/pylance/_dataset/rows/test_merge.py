from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance

ROWS = pa.table({"id": pa.array(range(6), pa.int64()), "v": [f"v{i}" for i in range(6)]})
SOURCE = pa.table({"id": pa.array([4, 9], pa.int64()), "v": ["four", "nine"]})


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(ROWS, tmp_path / "t", max_rows_per_file=3)


def _values(dataset: lance.LanceDataset) -> dict[int, str]:
    rows = dataset.to_table().to_pylist()
    return {row["id"]: row["v"] for row in rows}


def test_an_upsert_counts_and_moves_the_dataset(dataset: lance.LanceDataset) -> None:
    builder = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    assert builder.execute(SOURCE) == {
        "num_inserted_rows": 1,
        "num_updated_rows": 1,
        "num_deleted_rows": 0,
    }
    assert dataset.version == 2
    assert _values(dataset)[9] == "nine"


@pytest.mark.parametrize(
    "source",
    [SOURCE, SOURCE.to_reader(), SOURCE.to_batches()[0], SOURCE.to_pandas(), SOURCE.to_batches()],
    ids=["table", "reader", "batch", "frame", "batches"],
)
def test_rows_come_in_any_of_the_usual_shapes(dataset: lance.LanceDataset, source: object) -> None:
    merge = dataset.merge_insert("id").when_not_matched_insert_all()
    assert merge.execute(source, schema=SOURCE.schema)["num_inserted_rows"] == 1


def test_a_merge_can_be_committed_later(dataset: lance.LanceDataset) -> None:
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    transaction, stats = merge.execute_uncommitted(SOURCE)
    assert stats["num_inserted_rows"] == 1
    assert dataset.version == 1
    committed = lance.LanceDataset.commit(dataset.uri, transaction)
    assert committed.version == 2
    assert _values(committed)[4] == "four"


def test_a_plan_says_what_will_be_done(dataset: lance.LanceDataset) -> None:
    merge = dataset.merge_insert("id").when_matched_update_all("source.id > 1")
    plan = merge.use_index(False).explain_plan(SOURCE.schema)
    assert "MergeInsert: on=[id], when_matched=UpdateAll if source.id > 1" in plan
    assert "columns=[id, _rowaddr]" in plan
    assert "Source: id, v" in plan


def test_a_plan_can_be_tried_without_a_commit(dataset: lance.LanceDataset) -> None:
    merge = dataset.merge_insert("id").when_matched_update_all()
    assert "source_rows=2" in merge.analyze_plan(SOURCE)
    assert dataset.version == 1


def test_an_unknown_key_column_is_refused_at_once(dataset: lance.LanceDataset) -> None:
    with pytest.raises(ValueError, match="'nope' does not exist in schema"):
        dataset.merge_insert("nope")


def test_a_merge_that_does_nothing_is_refused(dataset: lance.LanceDataset) -> None:
    with pytest.raises(ValueError, match="not configured to change the data"):
        dataset.merge_insert("id").execute(SOURCE)


def test_rows_in_memory_are_merged_by_the_calls_of_pylance() -> None:
    rows = pa.table({"id": [1, 2], "v": [1, 2]})
    made = lance.write_dataset(rows, "memory://merged")
    builder = made.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    new = pa.table({"id": [2, 3], "v": [5, 6]})
    assert "num_updated_rows=1" in builder.analyze_plan_batches(new.to_reader())
    transaction, counts = builder.execute_uncommitted_batches(new.to_reader())
    assert transaction.read_version == 1
    assert builder.execute_batches(new.to_reader()) == counts
    assert made.to_table().sort_by("id")["v"].to_pylist() == [1, 5, 6]


def test_an_analysis_counts_the_files_and_bytes_that_it_wrote() -> None:
    made = lance.write_dataset(pa.table({"id": [1, 2]}), "memory://analysed")
    builder = made.merge_insert("id").when_not_matched_insert_all()
    text = builder.analyze_plan(pa.table({"id": [2, 3]}))
    found = re.search(r"num_files_written=(\d+), bytes_written=(\d+)", text)
    assert found is not None
    assert int(found[1]) == 1
    assert int(found[2]) > 0
