"""Tables made of files and of Delta tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lancelake
from lancelake.errors import AlreadyExistsError, InvalidRequestError, NotFoundError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for day in (1, 2):
        (tmp_path / "sales" / f"day={day}").mkdir(parents=True)
        rows = pa.table({"id": [day * 10, day * 10 + 1]})
        pq.write_table(rows, tmp_path / "sales" / f"day={day}" / "part.parquet")
    return tmp_path / "sales"


def test_folders_of_partitions_become_columns(folder: Path, tmp_path: Path) -> None:
    table = lancelake.convert(folder, tmp_path / "t.lance")
    assert table.to_table().to_pydict() == {"id": [10, 11, 20, 21], "day": [1, 1, 2, 2]}


def test_the_version_has_the_message_and_the_row_ids(folder: Path, tmp_path: Path) -> None:
    table = lancelake.convert(
        folder, tmp_path / "t.lance", enable_stable_row_ids=True, commit_message="from the lake"
    )
    assert table.has_stable_row_ids
    assert table._snapshot.transaction is not None
    assert table._snapshot.transaction.message == "from the lake"


def test_an_existing_table_is_kept(folder: Path, tmp_path: Path) -> None:
    lancelake.write_dataset({"id": [1]}, tmp_path / "t.lance")
    with pytest.raises(AlreadyExistsError):
        lancelake.convert(folder, tmp_path / "t.lance")
    assert lancelake.dataset(tmp_path / "t.lance").count_rows() == 1


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError, match="has no files"):
        lancelake.convert(tmp_path / "empty", tmp_path / "t.lance")


def test_a_delta_table_is_read_by_its_log(folder: Path, tmp_path: Path) -> None:
    (folder / "_delta_log").mkdir()
    with pytest.raises(InvalidRequestError, match="no complete Delta log") as caught:
        lancelake.convert(folder, tmp_path / "t.lance")
    assert caught.value.table == str(folder)
