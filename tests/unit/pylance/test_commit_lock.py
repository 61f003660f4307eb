"""The commit lock of a dataset is held for every commit."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.commit import CommitConflictError
from lancelake.pylance.fragment import write_fragments
from lancelake.pylance.optimize import Compaction

ROWS = pa.table({"id": [1, 2, 3, 4], "v": [1, 2, 3, 4]})


class Recorder:
    """A lock that notes for which versions it was held."""

    def __init__(self) -> None:
        self.versions: list[int] = []

    @contextmanager
    def __call__(self, version: int) -> Iterator[None]:
        self.versions.append(version)
        yield


@pytest.fixture
def place(tmp_path: Path) -> Path:
    uri = tmp_path / "t.lance"
    lance.write_dataset(ROWS, uri, max_rows_per_file=2)
    return uri


def _upsert(ds: Any) -> None:
    builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.execute(pa.table({"id": [4, 5], "v": [0, 0]}))


def _widen(ds: Any) -> None:
    rows = pa.table({"id": [9], "v": [9], "w": [9]})
    ds.insert(rows, schema_mode="merge")


def _commit(ds: Any) -> None:
    operation = lance.LanceOperation.Append(write_fragments(ROWS, ds))
    lance.LanceDataset.commit(ds, operation, ds.version)


def _commit_batch(ds: Any) -> None:
    transaction: Any = write_fragments(ROWS, ds, return_transaction=True)
    lance.LanceDataset.commit_batch(ds, [transaction])


def _compact_in_steps(ds: Any) -> None:
    plan = Compaction.plan(ds, {})
    Compaction.commit(ds, [task.execute(ds) for task in plan.tasks])


def _function(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"mapped": batch.column("id")})


CHANGES: dict[str, Callable[[Any], object]] = {
    "insert": lambda ds: ds.insert(ROWS),
    "insert with a new column": _widen,
    "write_dataset": lambda ds: lance.write_dataset(ROWS, ds, mode="append"),
    "overwrite": lambda ds: lance.write_dataset(ROWS, ds, mode="overwrite"),
    "delete": lambda ds: ds.delete("id = 1"),
    "truncate_table": lambda ds: ds.truncate_table(),
    "update": lambda ds: ds.update({"v": "0"}, where="id = 2"),
    "merge_insert": _upsert,
    "add null columns": lambda ds: ds.add_columns(pa.field("n", pa.int32())),
    "add computed columns": lambda ds: ds.add_columns({"c": "id + 1"}),
    "add mapped columns": lambda ds: ds.add_columns(_function, read_columns=["id"]),
    "add streamed columns": lambda ds: ds.add_columns(pa.table({"s": [1, 2, 3, 4]}).to_reader()),
    "drop_columns": lambda ds: ds.drop_columns(["v"]),
    "alter_columns": lambda ds: ds.alter_columns({"path": "v", "name": "w"}),
    "reorder_columns": lambda ds: ds.reorder_columns(["v"]),
    "merge": lambda ds: ds.merge(pa.table({"id": [1], "m": [1]}), "id"),
    "restore": lambda ds: ds.restore(),
    "update_config": lambda ds: ds.update_config({"a": "b"}),
    "delete_config_keys": lambda ds: ds.delete_config_keys(["a"]),
    "update_metadata": lambda ds: ds.update_metadata({"a": "b"}),
    "update_schema_metadata": lambda ds: ds.update_schema_metadata({"a": "b"}),
    "replace_schema_metadata": lambda ds: ds.replace_schema_metadata({"a": "b"}),
    "update_field_metadata": lambda ds: ds.update_field_metadata({"v": {"a": "b"}}),
    "replace_field_metadata": lambda ds: ds.replace_field_metadata("v", {"a": "b"}),
    "add_bases": lambda ds: ds.add_bases([lance.DatasetBasePath("/elsewhere", name="b")]),
    "compact_files": lambda ds: ds.optimize.compact_files(),
    "Compaction.commit": _compact_in_steps,
    "commit": _commit,
    "commit_batch": _commit_batch,
    "create_branch": lambda ds: ds.create_branch("other"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_holds_the_lock(place: Path, name: str) -> None:
    lock = Recorder()
    ds = lance.dataset(place, commit_lock=lock)
    CHANGES[name](ds)
    first = 1 if name == "create_branch" else 2
    assert lock.versions == list(range(first, first + len(lock.versions)))
    assert lock.versions
    if name != "create_branch":
        assert lock.versions[-1] == lance.dataset(place).version


def _as_of_now(place: Path, lock: Recorder) -> Any:
    return lance.dataset(place, asof=datetime.now(UTC), commit_lock=lock)


@pytest.mark.parametrize(
    "opened",
    [
        _as_of_now,
        lambda place, lock: lance.LanceDataset(place, commit_lock=lock),
        lambda place, lock: copy.copy(lance.dataset(place, commit_lock=lock)),
        lambda place, lock: lance.dataset(place, commit_lock=lock).checkout_version(1),
        lambda place, lock: lance.dataset(place, commit_lock=lock).create_branch("other"),
        lambda place, lock: lance.write_dataset(ROWS, place, mode="append", commit_lock=lock),
    ],
)
def test_the_lock_goes_with_the_dataset(place: Path, opened: Callable[..., Any]) -> None:
    lock = Recorder()
    ds = opened(place, lock)
    lock.versions.clear()
    ds.delete("id = 1")
    assert lock.versions == [ds.version]


def test_a_lock_for_one_call_comes_before_that_of_the_dataset(place: Path) -> None:
    general, special = Recorder(), Recorder()
    ds = lance.dataset(place, commit_lock=general)
    ds.insert(ROWS, commit_lock=special)
    assert (general.versions, special.versions) == ([], [2])


def test_a_dataset_whose_lock_was_left_behind_does_not_commit(place: Path) -> None:
    travelled = pickle.loads(pickle.dumps(lance.dataset(place, commit_lock=Recorder())))
    assert travelled.count_rows() == 4
    with pytest.raises(OSError, match="lost when it was pickled"):
        travelled.delete("id = 1")
    assert lance.dataset(place).version == 1


def test_a_lock_that_is_no_function_is_refused(place: Path) -> None:
    with pytest.raises(TypeError, match="commit_lock must be a function"):
        lance.dataset(place, commit_lock=5)


def test_a_lock_may_say_that_a_version_is_taken_without_a_reason(place: Path) -> None:
    refused: list[int] = []

    def lock(version: int) -> AbstractContextManager[None]:
        if not refused:
            refused.append(version)
            raise CommitConflictError
        return Recorder()(version)

    ds = lance.dataset(place, commit_lock=lock)
    ds.delete("id = 1")
    assert (refused, ds.version) == ([2], 2)


def test_a_conflict_without_a_reason_says_what_happened() -> None:
    assert "committed first" in str(CommitConflictError())
    assert isinstance(CommitConflictError("taken"), OSError)
