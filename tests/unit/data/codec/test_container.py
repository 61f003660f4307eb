"""The tables at the end of a data file."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.data.codec.file_layout import FOOTER, open_container
from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format.fragment import FileVersion
from tests.support.data_files import FILES, written
from tests.support.legacy_tables import MemorySource

DATA = (FILES / "blob_v2-4.0.2-2.2.lance").read_bytes()


def with_footer(**changes: int) -> bytes:
    names = ["metadata", "columns", "buffers", "num_buffers", "num_columns", "major", "minor"]
    *numbers, magic = FOOTER.unpack(DATA[-FOOTER.size :])
    values = dict(zip(names, numbers, strict=True)) | changes
    return DATA[: -FOOTER.size] + FOOTER.pack(*values.values(), magic)


def test_the_version_is_that_of_the_footer() -> None:
    assert open_container(MemorySource(DATA)).version is FileVersion.V2_2


def test_a_20_file_calls_itself_03() -> None:
    container = open_container(MemorySource((FILES / "packed-4.0.2-2.0.lance").read_bytes()))
    assert (container.version_numbers, container.version) == ((0, 3), FileVersion.V2_0)


def test_the_descriptor_has_the_number_of_rows() -> None:
    assert open_container(MemorySource(DATA)).descriptor().length == 8


def test_every_column_has_pages() -> None:
    container = open_container(MemorySource(DATA))
    pages = [len(container.column(index).pages) for index in range(container.num_columns)]
    assert pages == [1, 1, 1, 1, 1]


def test_a_small_file_takes_one_read() -> None:
    source = MemorySource(DATA)
    container = open_container(source)
    container.descriptor()
    container.column(0)
    assert len(source.reads) == 1


def test_tables_longer_than_the_first_read_are_found(tmp_path: Path) -> None:
    columns = {f"column_{n}": pa.array([n]) for n in range(5000)}
    path = written(tmp_path / "wide.lance", pa.table(columns), "2.1")
    container = open_container(MemorySource(path.read_bytes()))
    assert container.num_columns == 5000


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"LANC",
        DATA[:-1],
        DATA[:-4] + b"PAR1",
        with_footer(columns=len(DATA)),
        with_footer(buffers=len(DATA) - 8),
        with_footer(num_columns=1 << 31),
        with_footer(num_buffers=1 << 31),
        with_footer(columns=0),
    ],
)
def test_damaged_ends_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptTableError):
        open_container(MemorySource(data))


def test_a_file_without_global_buffers_has_no_schema() -> None:
    container = open_container(MemorySource(with_footer(num_buffers=0)))
    with pytest.raises(CorruptTableError):
        container.descriptor()


def test_an_unknown_version_is_named() -> None:
    container = open_container(MemorySource(with_footer(major=9, minor=9)))
    with pytest.raises(UnsupportedError, match=r"9\.9"):
        _ = container.version


@given(st.integers(len(DATA) - 400, len(DATA) - 1), st.integers(0, 255))
def test_any_changed_byte_gives_a_container_or_a_named_error(position: int, value: int) -> None:
    data = bytearray(DATA)
    data[position] = value
    try:
        container = open_container(MemorySource(bytes(data)))
        container.descriptor()
        for index in range(min(container.num_columns, 5)):
            container.column(index)
    except CorruptTableError:
        return
    assert struct.calcsize("<QQ") * container.num_columns <= len(DATA)
