"""Both kinds of deletion files, read and written."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from pyroaring import BitMap

from lancelake.errors import CorruptTableError
from lancelake.format import deletion
from lancelake.format.fragment import DeletionFileType
from tests.unit.format.golden.files import RELEASES, read

ARRAY, BITMAP = DeletionFileType.ARROW_ARRAY, DeletionFileType.BITMAP
FEW = BitMap(i for i in range(700) if i % 7 == 3)
MANY = FEW | BitMap(i for i in range(20_000) if i % 3 == 1)


def ipc(table: pa.Table, compression: str | None = None, batch_rows: int | None = None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=batch_rows)
    return sink.getvalue()


def rows(*values: int | None, dtype: pa.DataType | None = None) -> pa.Table:
    return pa.table([pa.array(values, dtype or pa.uint32())], schema=deletion.ARROW_SCHEMA)


@pytest.mark.parametrize("release", RELEASES)
def test_an_array_by_an_official_release_is_read(release):
    assert deletion.decode(read(release, "deletions.arrow"), ARRAY) == FEW


@pytest.mark.parametrize("release", RELEASES)
def test_a_bitmap_by_an_official_release_is_read(release):
    assert deletion.decode(read(release, "deletions.bin"), BITMAP) == MANY


def test_a_large_array_is_compressed():
    many = BitMap(range(0, 9000, 2))
    plain = ipc(rows(*many))

    assert len(deletion.encode(many, ARRAY)) < len(plain)


def test_a_small_array_is_not_compressed():
    assert len(deletion.encode(FEW, ARRAY)) <= len(ipc(rows(*FEW)))


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_an_array_is_read_whatever_its_compression(compression):
    assert deletion.decode(ipc(rows(9, 1, 5), compression), ARRAY) == BitMap([1, 5, 9])


def test_an_array_has_one_column_of_row_offsets():
    with pa.ipc.open_file(deletion.encode(FEW, ARRAY)) as reader:
        assert reader.schema.equals(
            pa.schema([pa.field("row_id", pa.uint32(), nullable=False)]), check_metadata=True
        )


def test_a_bitmap_is_in_the_portable_form():
    assert deletion.encode(BitMap([1]), BITMAP)[:4] == b"\x3a\x30\x00\x00"


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"row_id": pa.array([1], pa.uint32())}),
        pa.table({"row_id": pa.array([1], pa.int32())}),
        pa.table([pa.array([1], pa.uint32())], schema=pa.schema([("rows", pa.uint32())])),
        rows(1).replace_schema_metadata({"k": "v"}),
    ],
    ids=["nullable", "signed", "other name", "metadata"],
)
def test_an_array_of_another_schema_is_damage(table):
    with pytest.raises(CorruptTableError):
        deletion.decode(ipc(table), ARRAY)


@pytest.mark.parametrize("table", [rows(), rows(1, 2)], ids=["none", "two"])
def test_an_array_of_other_than_one_batch_is_damage(table):
    with pytest.raises(CorruptTableError):
        deletion.decode(ipc(table, batch_rows=1), ARRAY)


def test_a_null_in_an_array_is_damage():
    with pytest.raises(CorruptTableError):
        deletion.decode(ipc(rows(1, None)), ARRAY)


@pytest.mark.parametrize("encoding", [ARRAY, BITMAP])
@pytest.mark.parametrize("data", [b"", b"\0" * 64, b"ARROW1\0\0"])
def test_bytes_of_something_else_are_damage(data, encoding):
    with pytest.raises(CorruptTableError):
        deletion.decode(data, encoding)


@pytest.mark.parametrize(
    ("count", "before", "expected"),
    [
        (1, None, ARRAY),
        (4999, None, ARRAY),
        (5000, None, BITMAP),
        (5000, ARRAY, ARRAY),
        (5001, ARRAY, BITMAP),
        (1, BITMAP, BITMAP),
    ],
)
def test_the_encoding_is_chosen_as_official_writers_do(count, before, expected):
    assert deletion.choose_encoding(count, before) is expected


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_an_array_of_more_rows_than_there_are_is_damage(compression):
    data = ipc(rows(*range(50_000)), compression)
    with pytest.raises(CorruptTableError, match="claims 50000 rows of 7"):
        deletion.decode(data, ARRAY, rows=7)


@pytest.mark.parametrize("encoding", [ARRAY, BITMAP])
def test_a_row_past_the_end_of_the_fragment_is_damage(encoding):
    data = deletion.encode(BitMap([1, 7]), encoding)
    assert deletion.decode(data, encoding, rows=8) == BitMap([1, 7])
    with pytest.raises(CorruptTableError, match="it names row 7 of 7"):
        deletion.decode(data, encoding, rows=7)
