"""Rows of a commit that is refused are removed; those of one in doubt stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.candidate import tally
from lancelake.errors import (
    AlreadyExistsError,
    RetryableConflictError,
    StorageError,
    UncertainCommitError,
)
from lancelake.pylance.blob import blob_array
from lancelake.table import publish as publishing
from lancelake.table.publish import removed_if_refused

ROWS = pa.table({"id": range(10), "v": [0] * 10})


def data_files(ds: lance.LanceDataset) -> set[str]:
    return {path.name for path in (Path(ds.uri) / "data").iterdir()}


def test_blobs_go_with_their_file(tmp_path: Path) -> None:
    rows = pa.table({"b": blob_array([bytes(5_000_000)])})
    ds = lance.write_dataset(rows, tmp_path / "t", data_storage_version="2.2")
    snapshot = ds._snapshot
    with (
        pytest.raises(AlreadyExistsError),
        removed_if_refused(snapshot.files, tuple(snapshot.manifest.fragments)),
    ):
        raise AlreadyExistsError("there is a table")
    assert [path for path in tmp_path.rglob("data/**/*") if path.is_file()] == []


@pytest.mark.parametrize(
    "error", [UncertainCommitError("?"), StorageError("?"), KeyboardInterrupt()]
)
def test_files_that_a_commit_may_need_stay(tmp_path: Path, error: BaseException) -> None:
    snapshot = lance.write_dataset(ROWS, tmp_path / "t")._snapshot
    with (
        pytest.raises(type(error)),
        removed_if_refused(snapshot.files, tuple(snapshot.manifest.fragments)),
    ):
        raise error
    assert lance.dataset(tmp_path / "t").count_rows() == 10


def test_files_of_a_conflict_after_a_lost_reply_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = lance.write_dataset(ROWS, tmp_path / "t")._snapshot
    with (
        pytest.raises(RetryableConflictError),
        removed_if_refused(snapshot.files, tuple(snapshot.manifest.fragments)),
    ):
        monkeypatch.setattr(tally, "lost", tally.lost + 1)
        raise RetryableConflictError("another was faster")
    assert lance.dataset(tmp_path / "t").count_rows() == 10


CHANGES: dict[str, Callable[[lance.LanceDataset], object]] = {
    "update": lambda ds: ds.update({"v": "1"}, where="id < 5"),
    "merge": lambda ds: ds.merge_insert("id").when_matched_update_all().execute(ROWS.slice(0, 5)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_attempt_that_conflicts_leaves_no_rows(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = lance.write_dataset(ROWS, tmp_path / "t")
    publish = publishing.publish
    attempts: list[set[str]] = []

    def conflicting(*args: object) -> object:
        attempts.append(data_files(ds))
        if len(attempts) == 1:
            raise RetryableConflictError("another was faster")
        return publish(*args)

    monkeypatch.setattr(publishing, "publish", conflicting)
    CHANGES[change](ds)
    assert [len(found) for found in attempts] == [2, 2]
    assert len(data_files(ds)) == 2
