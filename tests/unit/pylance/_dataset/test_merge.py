from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import ContentionError

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


def test_every_clause_can_be_built(dataset: lance.LanceDataset) -> None:
    merge = (
        dataset.merge_insert(["id"])
        .when_matched_delete("source.id = 0")
        .when_matched_fail("source.id = 1")
        .when_matched_update({"v": "concat(target.v, '+')"}, "source.id = 2")
        .when_matched_update_all()
        .when_not_matched_insert({"id": "source.id", "v": "'new'"}, "source.id = 10")
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update({"v": "'lonely'"}, "id = 3")
        .when_not_matched_by_source_delete("id = 5")
    )
    source = pa.table({"id": [0, 2, 4, 10, 11], "v": ["a", "b", "c", "d", "e"]})
    stats = merge.execute(source)
    assert (stats["num_inserted_rows"], stats["num_updated_rows"]) == (2, 3)
    assert stats["num_deleted_rows"] == 2
    assert _values(dataset) == {1: "v1", 2: "v2+", 3: "lonely", 4: "c", 10: "new", 11: "e"}


def test_the_last_row_wins_and_columns_are_added_if_asked(dataset: lance.LanceDataset) -> None:
    source = pa.table({"id": [4, 4], "extra": [1, 2]})
    merge = dataset.merge_insert("id").when_matched_update_all()
    merge.last_source_row_wins().with_schema_evolution().execute(source)
    assert dataset.to_table(filter="extra IS NOT NULL").to_pylist() == [
        {"id": 4, "v": "v4", "extra": 2}
    ]


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


def test_limits_on_doing_it_again_are_kept(dataset: lance.LanceDataset) -> None:
    lance.dataset(dataset.uri).update({"v": "'x'"}, where="id = 4")
    merge = dataset.merge_insert("id").when_matched_update_all()
    with pytest.raises(ContentionError):
        merge.conflict_retries(0).execute(SOURCE)
    with pytest.raises(ContentionError):
        merge.conflict_retries(5).retry_timeout(timedelta()).execute(SOURCE)


def test_an_unknown_key_column_is_refused_at_once(dataset: lance.LanceDataset) -> None:
    with pytest.raises(ValueError, match="'nope' does not exist in schema"):
        dataset.merge_insert("nope")


def test_a_merge_that_does_nothing_is_refused(dataset: lance.LanceDataset) -> None:
    with pytest.raises(ValueError, match="not configured to change the data"):
        dataset.merge_insert("id").execute(SOURCE)


KEY = pa.field("key", pa.int64(), nullable=False).with_metadata(
    {"lance-schema:unenforced-primary-key": "true"}
)


@pytest.mark.parametrize("names", [("n", "m"), ("source", "target")])
def test_every_clause_works_on_a_table_with_a_primary_key(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    n, m = names
    schema = pa.schema([KEY, pa.field(n, pa.int64()), pa.field(m, pa.int64())])
    start = pa.table([[0, 1, 2, 3, 4, 5], [1] * 6, [1] * 6], schema=schema)
    dataset = lance.write_dataset(start, tmp_path / "t")
    merge = (
        dataset.merge_insert()
        .when_matched_delete(f"source.{n} = 0")
        .when_matched_update({n: f"target.{n} + source.{n}"}, f"source.{m} = 5")
        .when_matched_update_all(f"target.{n} < source.{n}")
        .when_not_matched_insert({"key": "source.key", n: f"source.{n} * 2"}, "source.key = 10")
        .when_not_matched_insert_all(f"source.{n} > 0")
        .when_not_matched_by_source_update({n: f"{n} + {m} + 7"}, f"key = 4 AND {n} = 1")
        .when_not_matched_by_source_delete(f"{m} = 1")
    )
    source = pa.table(
        [[0, 1, 2, 3, 10, 11, 12], [0, 3, 4, 1, 6, 7, 0], [0, 5, 8, 9, 9, 9, 9]], schema=schema
    )
    stats = merge.execute(source)
    assert stats == {"num_inserted_rows": 2, "num_updated_rows": 3, "num_deleted_rows": 2}
    assert sorted(tuple(row.values()) for row in dataset.to_table().to_pylist()) == [
        (1, 4, 1),
        (2, 4, 8),
        (3, 1, 1),
        (4, 9, 1),
        (10, 12, None),
        (11, 7, 9),
    ]


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


@pytest.mark.parametrize(
    "call",
    [
        lambda merge: merge.write_mode("rewrite_columns"),
        lambda merge: merge.data_storage_version("2.0"),
        lambda merge: merge.target_bases(["x"]),
        lambda merge: merge.target_all_bases(),
    ],
)
def test_what_a_merge_cannot_do_is_refused(call: Callable[[Any], Any]) -> None:
    made = lance.write_dataset(pa.table({"id": [1]}), "memory://refused")
    with pytest.raises(NotImplementedError):
        call(made.merge_insert("id"))


def test_a_merge_takes_the_choices_that_it_makes_anyway() -> None:
    made = lance.write_dataset(pa.table({"id": [1]}), "memory://taken")
    merge = made.merge_insert("id").write_mode("auto")
    assert merge.data_storage_version(made.data_storage_version) is merge


def test_an_analysis_counts_the_files_and_bytes_that_it_wrote() -> None:
    made = lance.write_dataset(pa.table({"id": [1, 2]}), "memory://analysed")
    builder = made.merge_insert("id").when_not_matched_insert_all()
    text = builder.analyze_plan(pa.table({"id": [2, 3]}))
    found = re.search(r"num_files_written=(\d+), bytes_written=(\d+)", text)
    assert found is not None
    assert int(found[1]) == 1
    assert int(found[2]) > 0
