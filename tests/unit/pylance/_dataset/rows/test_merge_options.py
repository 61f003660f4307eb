from __future__ import annotations

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


def test_the_last_row_wins_and_columns_are_added_if_asked(dataset: lance.LanceDataset) -> None:
    source = pa.table({"id": [4, 4], "extra": [1, 2]})
    merge = dataset.merge_insert("id").when_matched_update_all()
    merge.last_source_row_wins().with_schema_evolution().execute(source)
    assert dataset.to_table(filter="extra IS NOT NULL").to_pylist() == [
        {"id": 4, "v": "v4", "extra": 2}
    ]


def test_members_of_structs_are_added_if_asked(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "s": [{"a": 1}, {"a": 2}]})
    dataset = lance.write_dataset(rows, tmp_path / "t")
    source = pa.table({"id": [2, 3], "s": [{"a": 7, "b": 8}, {"a": 9, "b": None}]})
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.with_schema_evolution().execute(source)
    assert lance.dataset(dataset.uri).to_table().sort_by("id")["s"].to_pylist() == [
        {"a": 1, "b": None},
        {"a": 7, "b": 8},
        {"a": 9, "b": None},
    ]


def test_limits_on_doing_it_again_are_kept(dataset: lance.LanceDataset) -> None:
    lance.dataset(dataset.uri).update({"v": "'x'"}, where="id = 4")
    merge = dataset.merge_insert("id").when_matched_update_all()
    with pytest.raises(ContentionError):
        merge.conflict_retries(0).execute(SOURCE)
    with pytest.raises(ContentionError):
        merge.conflict_retries(5).retry_timeout(timedelta()).execute(SOURCE)


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
