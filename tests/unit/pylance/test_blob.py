"""Blobs to write, and ranged reads of blob files."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.blob import (
    Blob,
    BlobArray,
    BlobColumn,
    BlobFile,
    BlobType,
    blob_array,
    blob_field,
)


class Bytes:
    """Bytes that remember how they were read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.data)

    def read(self, start: int, length: int) -> bytes:
        """Return some of them."""
        self.reads.append((start, length))
        return self.data[start : start + length]


def test_an_array_holds_bytes_places_and_nulls() -> None:
    array = blob_array([b"a", "s3://x/y", Blob.from_uri("s3://x/z", 1, 2), Blob.empty(), None])
    assert isinstance(array, BlobArray)
    assert array.type == BlobType()
    assert array.storage.to_pylist() == [
        {"data": b"a", "uri": None, "position": None, "size": None},
        {"data": None, "uri": "s3://x/y", "position": None, "size": None},
        {"data": None, "uri": "s3://x/z", "position": 1, "size": 2},
        {"data": b"", "uri": None, "position": None, "size": None},
        None,
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"data": b"", "uri": "x"},
        {"uri": ""},
        {"uri": "x", "position": 1},
        {"uri": "x", "position": 1, "size": 0},
        {"uri": "x", "position": -1, "size": 2},
        {"data": b"", "position": 1, "size": 2},
    ],
    ids=str,
)
def test_a_blob_that_says_two_things_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="blob"):
        Blob(**wrong)


def test_what_is_no_blob_is_refused() -> None:
    with pytest.raises(TypeError, match="int"):
        blob_array([1])


def test_limits_are_kept_with_the_field() -> None:
    field = blob_field("b", nullable=False, inline_size_threshold=0, pack_file_size_threshold=9)
    assert not field.nullable
    assert field.metadata == {
        b"lance-encoding:blob-inline-size-threshold": b"0",
        b"lance-encoding:blob-pack-file-size-threshold": b"9",
    }


@pytest.mark.parametrize(
    ("limit", "kind"),
    [(-1, ValueError), (0, ValueError), (True, TypeError), (1 << 64, OverflowError)],
)
def test_a_limit_is_a_number_of_bytes(limit: int, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        blob_field("b", dedicated_size_threshold=limit)


def test_the_type_survives_a_pickle_and_a_schema() -> None:
    schema = pa.schema([blob_field("b")])
    assert pickle.loads(pickle.dumps(BlobType())) == BlobType()
    assert pa.ipc.read_schema(schema.serialize()) == schema


def test_nothing_is_read_before_it_is_asked_for() -> None:
    inner = Bytes(b"x" * 100)
    file = BlobFile(inner)
    file.seek(50)
    assert (file.size(), file.tell(), inner.reads) == (100, 50, [])


def test_reads_go_ahead_by_the_size_of_the_buffer() -> None:
    inner = Bytes(bytes(range(100)))
    file = BlobFile(inner, buffer_size=32)
    assert [file.read(4) for _ in range(4)] == [bytes(range(i, i + 4)) for i in range(0, 16, 4)]
    assert inner.reads == [(0, 32)]


def test_without_a_buffer_just_what_is_asked_for_is_read() -> None:
    inner = Bytes(bytes(range(100)))
    file = BlobFile(inner, buffer_size=0)
    assert (file.read(4), file.read(3)) == (b"\0\1\2\3", b"\4\5\6")
    assert inner.reads == [(0, 4), (4, 3)]


def test_a_file_can_be_read_by_what_reads_files() -> None:
    file: Any = BlobFile(Bytes(b"one\ntwo\n"))
    lines = io.TextIOWrapper(file).readlines()
    assert lines == ["one\n", "two\n"]


def test_a_column_of_bytes_is_gone_through_as_files() -> None:
    files = list(BlobColumn(pa.array([b"a", None])))
    assert [None if file is None else file.read() for file in files] == [b"a", None]


@pytest.mark.parametrize("wrong", [[b"a"], pa.array([1])], ids=str)
def test_a_column_of_files_is_made_of_bytes(wrong: Any) -> None:
    with pytest.raises(ValueError, match="Expected"):
        BlobColumn(wrong)


@pytest.mark.parametrize(
    ("position", "size", "has_uri"), [(3, None, True), (3, 0, True), (None, 2, True), (3, 2, False)]
)
def test_an_invalid_range_of_an_external_blob_is_not_written(
    tmp_path: Path, position: int | None, size: int | None, has_uri: bool
) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(b"0123456789")
    storage = pa.StructArray.from_arrays(
        [
            pa.array([None if has_uri else b"x"], pa.large_binary()),
            pa.array([source.as_uri() if has_uri else None], pa.utf8()),
            pa.array([position], pa.uint64()),
            pa.array([size], pa.uint64()),
        ],
        names=["data", "uri", "position", "size"],
    )
    rows = pa.table([pa.ExtensionArray.from_storage(lance.BlobType(), storage)], names=["blob"])
    with pytest.raises(OSError, match="position and a size, which must be greater than zero"):
        lance.write_dataset(
            rows,
            tmp_path / "t",
            data_storage_version="2.2",
            allow_external_blob_outside_bases=True,
        )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "must set `data` or `uri`"),
        ({"data": b"x", "uri": "file:///x"}, "both data and uri"),
        ({"uri": "file:///x", "position": 3, "size": 0}, "greater than zero"),
    ],
)
def test_problems_of_a_value_are_named_as_pylance_names_them(
    arguments: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        lance.Blob(**arguments)


def test_ranges_beyond_a_blob_are_refused(tmp_path: Path) -> None:
    rows = pa.table([lance.blob_array([b"abc"])], schema=pa.schema([lance.blob_field("blob")]))
    made = lance.write_dataset(rows, tmp_path / "t", data_storage_version="2.2")
    with pytest.raises(ValueError, match=r"offset \+ length overflowed"):
        made.read_blob_ranges("blob", [(0, 2**64 - 1, 2)], selector="indices")
    with pytest.raises(ValueError, match="Blob range end 4 exceeds blob size 3"):
        made.read_blob_ranges("blob", [(0, 0, 4)], selector="indices")
    with pytest.raises(ValueError, match="io_buffer_size must be greater than 0"):
        made.read_blobs("blob", indices=[0], io_buffer_size=0)


def test_descriptors_of_blobs_are_built_with_the_class_of_the_codec() -> None:
    builder = lance.BlobDescriptorArrayBuilder("b")
    builder.append_inline(b"x")
    builder.append_null()
    assert builder.finish().null_count == 1
    assert builder.field.metadata[b"ARROW:extension:name"] == b"lance.blob.v2"
