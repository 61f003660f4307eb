"""`delta` as in pylance, with errors where pylance returns nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancelake.pylance
from lancelake.errors import InvalidRequestError, UnsupportedError, VersionNotFoundError
from lancelake.pylance.dataset import DatasetDelta

face: Any = lancelake.pylance
official: Any = lance


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table: three rows, two more, one of them deleted, one updated."""
    path = tmp_path / "table.lance"
    official.write_dataset(pa.table({"k": [1, 2, 3]}), path, enable_stable_row_ids=True)
    official.write_dataset(pa.table({"k": [4, 5]}), path, mode="append")
    official.dataset(path).delete("k = 4")
    official.dataset(path).update({"k": "20"}, where="k = 2")
    return path


def keys(reader: pa.RecordBatchReader) -> list[int]:
    return list(reader.read_all()["k"].to_pylist())


def test_this_version_is_compared_with_an_older_one(table: Path) -> None:
    found = face.dataset(table).delta(compared_against=1)
    assert isinstance(found, DatasetDelta)
    assert keys(found.get_inserted_rows()) == [5]
    assert keys(found.get_updated_rows()) == [20]
    names = [type(t.operation).__name__ for t in found.list_transactions()]
    assert names == ["Append", "Delete", "Update"]


def test_a_row_that_came_and_went_was_not_deleted(table: Path) -> None:
    dataset = face.dataset(table)
    deleted = dataset.delta(1).get_deleted_row_ids().read_all()
    assert deleted.to_pydict() == {"_rowid": []}
    deleted = dataset.delta(begin_version=2, end_version=3).get_deleted_row_ids().read_all()
    assert deleted.to_pydict() == {"_rowid": [3]}


def test_rows_carry_their_lineage(table: Path) -> None:
    found = face.dataset(table).delta(1).get_updated_rows().read_all()
    assert found.to_pylist() == [
        {"k": 20, "_rowid": 1, "_row_created_at_version": 1, "_row_last_updated_at_version": 4}
    ]


@pytest.mark.parametrize(
    "versions",
    [{}, {"begin_version": 1}, {"end_version": 2}, {"end_date": datetime(2020, 1, 1)}],
)
def test_half_a_range_is_refused(table: Path, versions: Any) -> None:
    with pytest.raises(InvalidRequestError, match="Must specify"):
        face.dataset(table).delta(**versions)


def test_a_range_that_goes_back_is_refused(table: Path) -> None:
    with pytest.raises(InvalidRequestError, match="newer than end version"):
        face.dataset(table).delta(begin_version=3, end_version=1)


def test_a_version_that_is_not_there_is_refused(table: Path) -> None:
    with pytest.raises(VersionNotFoundError, match="the latest is 4"):
        face.dataset(table).delta(begin_version=1, end_version=9)


def test_dates_stand_for_versions(table: Path) -> None:
    first = face.dataset(table).versions()[0]["timestamp"]
    found = face.dataset(table).delta(begin_date=first, end_date=first + timedelta(days=1))
    assert keys(found.get_inserted_rows()) == [5]


def test_without_stable_row_ids_only_transactions_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "plain.lance"
    official.write_dataset(pa.table({"k": [1]}), path)
    official.write_dataset(pa.table({"k": [2]}), path, mode="append")
    found = face.dataset(path).delta(1)
    assert len(found.list_transactions()) == 1
    for name in ("get_inserted_rows", "get_updated_rows", "get_deleted_row_ids"):
        with pytest.raises(UnsupportedError, match="stable row ids"):
            getattr(found, name)()


def test_rows_are_reported_when_older_versions_are_gone(table: Path) -> None:
    official.dataset(table).cleanup_old_versions(older_than=timedelta(0))
    found = face.dataset(table).delta(1)
    assert keys(found.get_inserted_rows()) == [5]
    with pytest.raises(VersionNotFoundError, match="cleaned up"):
        found.list_transactions()
    with pytest.raises(VersionNotFoundError, match="cleaned up"):
        found.get_deleted_row_ids()
