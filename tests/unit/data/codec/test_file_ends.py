"""Ends of data files are checked before the codec opens them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.data.codec.file_ends import container_at, sound_end
from lancelake.data.codec.file_layout import FOOTER, open_container
from lancelake.data.codec.readers import open_reader
from lancelake.data.codec.transplant import file_tail
from lancelake.data.column_reader import LoadedSource
from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.proto import file2_pb2
from lancelake.storage.instrumented import IoAccount
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from tests.support.data_files import written

TABLE = pa.table({"a": [1, 2], "b": ["x", "y"]})
HUGE = (1 << 31, (1 << 32) - 1)


def place(root: Path, version: str = "2.1") -> FileAt:
    written(root / "x.lance", TABLE, version)
    return FileAt(root=Location.parse(root), path="x.lance")


def changed(root: Path, change: Callable[[bytearray], None], version: str = "2.1") -> FileAt:
    found = place(root, version)
    data = bytearray((root / "x.lance").read_bytes())
    change(data)
    (root / "x.lance").write_bytes(data)
    return found


@pytest.mark.parametrize("count", HUGE)
@pytest.mark.parametrize("offset", [-16, -12], ids=["global buffers", "columns"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_count_beyond_the_file_is_reported(
    tmp_path: Path, version: str, offset: int, count: int
) -> None:
    damaged = changed(
        tmp_path, lambda d: struct.pack_into("<I", d, len(d) + offset, count), version
    )
    with pytest.raises(CorruptTableError, match=r"x\.lance is not a whole Lance data file"):
        open_reader(damaged, None)


@pytest.mark.parametrize("field", range(3))
@pytest.mark.parametrize("start", [0, 1 << 40, (1 << 64) - 1])
def test_a_start_of_a_table_elsewhere_is_reported(tmp_path: Path, field: int, start: int) -> None:
    damaged = changed(
        tmp_path, lambda d: struct.pack_into("<Q", d, len(d) - FOOTER.size + 8 * field, start)
    )
    with pytest.raises(CorruptTableError, match="is not a whole Lance data file"):
        open_reader(damaged, None)


@pytest.mark.parametrize("entry", ["column", "global buffer"])
@pytest.mark.parametrize("which", [0, 8], ids=["start", "length"])
def test_an_entry_that_points_outside_is_reported(tmp_path: Path, entry: str, which: int) -> None:
    def change(data: bytearray) -> None:
        numbers = FOOTER.unpack(data[-FOOTER.size :])
        at = numbers[1] if entry == "column" else numbers[2]
        struct.pack_into("<Q", data, at + which, 1 << 50)

    with pytest.raises(CorruptTableError, match="is not a whole Lance data file"):
        open_reader(changed(tmp_path, change), None)


def rewritten(root: Path, change: Callable[[file2_pb2.ColumnMetadata], None]) -> FileAt:
    """Write a file with other metadata of its first column."""
    found = place(root)
    data = (root / "x.lance").read_bytes()
    container = open_container(LoadedSource("x.lance", data))
    columns = [container.column(index) for index in range(container.num_columns)]
    change(columns[0])
    start = container.global_buffers[0].start
    tail = file_tail(start, columns, container.descriptor(), container.version_numbers)
    (root / "x.lance").write_bytes(data[:start] + tail)
    return found


def test_a_file_with_the_same_metadata_is_read(tmp_path: Path) -> None:
    assert open_reader(rewritten(tmp_path, lambda _: None), None).num_rows() == 2


def test_a_page_outside_of_the_file_is_reported(tmp_path: Path) -> None:
    def change(column: file2_pb2.ColumnMetadata) -> None:
        column.pages[0].buffer_sizes[0] = 1 << 40

    with pytest.raises(CorruptTableError, match="a page is outside of it"):
        open_reader(rewritten(tmp_path, change), None)


def test_a_page_with_other_rows_than_the_file_is_reported(tmp_path: Path) -> None:
    def change(column: file2_pb2.ColumnMetadata) -> None:
        column.pages[0].length = 1 << 40

    with pytest.raises(CorruptTableError, match="rows instead of 2"):
        open_reader(rewritten(tmp_path, change), None)


def test_a_column_name_with_a_zero_byte_is_reported(tmp_path: Path) -> None:
    found = place(tmp_path)
    data = (tmp_path / "x.lance").read_bytes()
    schema = open_container(LoadedSource("x.lance", data)).global_buffers[0]
    name = data.index(b"\x01a", schema.start) + 1
    (tmp_path / "x.lance").write_bytes(data[:name] + b"\0" + data[name + 1 :])
    with pytest.raises(CorruptTableError, match="zero byte"):
        open_reader(found, None)


def test_an_end_is_read_once(tmp_path: Path) -> None:
    found = place(tmp_path)
    assert sound_end(found) is sound_end(found)


def test_another_file_of_the_same_name_is_read_again(tmp_path: Path) -> None:
    found = place(tmp_path)
    before = sound_end(found)
    (tmp_path / "x.lance").unlink()
    written(tmp_path / "x.lance", TABLE.slice(1), "2.1")
    after = sound_end(found)
    assert before is not after


def test_a_legacy_file_has_no_end(tmp_path: Path) -> None:
    (tmp_path / "x.lance").write_bytes(bytes(64) + struct.pack("<HH4s", 0, 2, b"LANC"))
    found = FileAt(root=Location.parse(tmp_path), path="x.lance")
    assert sound_end(found) is None
    with pytest.raises(UnsupportedError, match="legacy"):
        container_at(found)


def test_a_small_file_of_a_store_is_kept_as_a_whole(tmp_path: Path) -> None:
    place(tmp_path)
    data = (tmp_path / "x.lance").read_bytes()
    root = Location.parse("memory://file-ends/t")
    root.store.put("x.lance", data)
    end = sound_end(FileAt(root=root, path="x.lance"))
    assert end is not None
    assert end.tail == data


def test_the_end_is_not_accounted_to_an_operation(tmp_path: Path) -> None:
    account = IoAccount()
    with account.active():
        sound_end(place(tmp_path))
    assert account.store_requests == 0
