"""Files are opened once, and errors of unreadable files are explained."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pyarrow as pa
import pytest
from lance.file import LanceFileWriter

from lancelake.caches import RecentlyUsed
from lancelake.data.codec.readers import expect_reader, explained, open_reader, temporary_folder
from lancelake.errors import CorruptTableError, OutOfRangeError
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from tests.support.open_files import open_removed_files


def written(root: Path, name: str = "x.lance") -> FileAt:
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    with LanceFileWriter(str(root / name), table.schema) as writer:
        writer.write_batch(table)
    return FileAt(root=Location.parse(root), path=name)


def test_open_reader_is_used_again(tmp_path: Path) -> None:
    place = written(tmp_path)
    assert open_reader(place, ("a",)) is open_reader(place, ("a",))


def test_files_of_a_temporary_folder_are_closed(tmp_path: Path) -> None:
    with temporary_folder("x-", tmp_path) as folder:
        place = written(folder)
        open_reader(place, None).num_rows()
    gc.collect()
    assert not folder.exists()
    assert open_removed_files(tmp_path) == []


def test_other_columns_have_another_reader(tmp_path: Path) -> None:
    place = written(tmp_path)
    assert open_reader(place, ("a",)) is not open_reader(place, ("b",))


def test_missing_file_is_named(tmp_path: Path) -> None:
    place = FileAt(root=Location.parse(tmp_path), path="data/gone.lance")
    with pytest.raises(CorruptTableError, match=r"data/gone\.lance is missing"):
        open_reader(place, None)


@pytest.mark.parametrize("data", [b"", b"short", b"\x00" * 4096])
def test_file_that_is_none_of_ours_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "odd.lance").write_bytes(data)
    place = FileAt(root=Location.parse(tmp_path), path="odd.lance")
    with pytest.raises(CorruptTableError, match=r"odd\.lance"):
        open_reader(place, None)


def test_failed_open_is_tried_again(tmp_path: Path) -> None:
    place = FileAt(root=Location.parse(tmp_path), path="late.lance")
    with pytest.raises(CorruptTableError):
        open_reader(place, None)
    written(tmp_path, "late.lance")
    assert open_reader(place, None).num_rows() == 2


@pytest.mark.parametrize("error", [OSError("disk"), ValueError("odd"), pa.ArrowInvalid("bad")])
def test_failure_of_the_codec_names_the_file(error: Exception) -> None:
    with (
        pytest.raises(CorruptTableError, match=r"x\.lance cannot be read") as caught,
        explained("x.lance"),
    ):
        raise error
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [OutOfRangeError("far"), KeyboardInterrupt()])
def test_other_failures_pass_through(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, explained("x.lance"):
        raise error
    assert caught.value is error


def test_cache_forgets_what_was_not_used_for_longest() -> None:
    made: list[str] = []

    def make(key: str) -> str:
        made.append(key)
        return key.upper()

    cache: RecentlyUsed[str, str] = RecentlyUsed(2)
    for key in ("a", "b", "a", "c", "a", "b"):
        assert cache.get(key, lambda key=key: make(key)) == key.upper()
    assert made == ["a", "b", "c", "b"]


def test_end_of_an_expected_file_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f.lance").write_bytes(bytes(100_000))
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, start, size, __: asked.append((start, size)))
    expect_reader(FileAt(root=Location.parse(tmp_path), path="f.lance"))
    assert asked == [(100_000 - 65_536, 0)]


@pytest.mark.parametrize("name", ["missing.lance", "pipe.lance"])
def test_expected_file_that_cannot_be_read_is_left_to_the_reader(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe.lance")
    expect_reader(FileAt(root=Location.parse(tmp_path), path=name))
