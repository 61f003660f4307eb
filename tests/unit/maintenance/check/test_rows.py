"""Damage within data files is found when every value is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.format.arrow_schema import from_arrow
from lancelake.maintenance.check.data_files import forbidden_nulls
from lancelake.proto.table_pb2 import Manifest
from tests.support.sound_tables import codes
from tests.support.table_surgery import edit_manifest


def _data_file(root: Path) -> Path:
    return sorted((root / "data").glob("*.lance"))[0]


def test_a_file_without_its_magic_is_found(table: Path) -> None:
    path = _data_file(table)
    path.write_bytes(path.read_bytes()[:-4] + b"NOPE")
    assert "data-file-damaged" in codes(table, data=True)


def test_a_file_of_another_version_than_its_entry_is_found(table: Path) -> None:
    path = _data_file(table)
    content = path.read_bytes()
    path.write_bytes(content[:-8] + b"\x02\x00\x02\x00" + content[-4:])
    assert "data-file-version" in codes(table, data=True)


def test_a_file_of_an_unknown_version_is_found(table: Path) -> None:
    path = _data_file(table)
    content = path.read_bytes()
    path.write_bytes(content[:-8] + b"\x09\x00\x09\x00" + content[-4:])
    assert "file-version-unknown" in codes(table, data=True)


def test_a_column_past_the_end_of_the_file_is_found(table: Path) -> None:
    def change(manifest: Manifest) -> None:
        manifest.fragments[0].files[0].column_indices[0] = 50

    edit_manifest(table, change)
    assert "file-columns" in codes(table, data=True)


def test_a_file_with_garbage_inside_is_found(table: Path) -> None:
    path = _data_file(table)
    content = path.read_bytes()
    path.write_bytes(b"\xff" * (len(content) - 48) + content[-48:])
    assert "column-unreadable" in codes(table, data=True)


def test_a_file_with_other_rows_than_the_manifest_says_is_found(table: Path) -> None:
    def change(manifest: Manifest) -> None:
        manifest.fragments[1].physical_rows = 11

    edit_manifest(table, change)
    assert {"column-unreadable", "row-count"} & set(codes(table, data=True))


def test_without_data_the_content_of_files_is_not_looked_at(table: Path) -> None:
    path = _data_file(table)
    content = path.read_bytes()
    path.write_bytes(b"\xff" * len(content))
    assert codes(table) == []


def test_a_null_in_a_column_made_not_nullable_is_found(table: Path) -> None:
    def change(manifest: Manifest) -> None:
        manifest.fields[2].nullable = False
        # A column that no file supplies is null.
        manifest.fields[2].id = 50
        manifest.fields[3].parent_id = manifest.fields[4].parent_id = 50
        manifest.fields[3].id, manifest.fields[4].id = 51, 52

    edit_manifest(table, change)
    assert "null-forbidden" in codes(table, data=True)


def test_nulls_of_deleted_rows_are_no_errors(tmp_path: Path) -> None:
    rows = pa.table({"key": [0, 1, 2], "v": pa.array([1, None, 3], pa.int8())})
    ds = lance.write_dataset(rows, str(tmp_path / "t"))
    ds.delete("key = 1")
    ds.alter_columns({"path": "v", "nullable": False})
    assert codes(tmp_path / "t", data=True) == []


STRUCT = pa.struct([pa.field("a", pa.int32(), nullable=False)])


@pytest.mark.parametrize(
    ("array", "field", "count"),
    [
        (pa.array([1, None]), pa.field("x", pa.int64()), 0),
        (pa.array([1, None]), pa.field("x", pa.int64(), nullable=False), 1),
        (pa.array([{"a": None}, {"a": 1}], STRUCT), pa.field("x", STRUCT), 1),
        (pa.array([None, {"a": 1}], STRUCT), pa.field("x", STRUCT), 0),
        (
            pa.array([[1, None], None, []], pa.list_(pa.int32())),
            pa.field("x", pa.list_(pa.field("item", pa.int32(), nullable=False))),
            1,
        ),
        (
            pa.array([[{"a": None}]], pa.list_(STRUCT)),
            pa.field("x", pa.list_(STRUCT)),
            1,
        ),
        (
            pa.array([[("k", None)]], pa.map_(pa.string(), pa.int32())),
            pa.field("x", pa.map_(pa.string(), pa.int32())),
            0,
        ),
    ],
)
def test_nulls_count_where_a_field_forbids_them(
    array: pa.Array, field: pa.Field, count: int
) -> None:
    (lance_field,) = from_arrow(pa.schema([field])).fields
    assert forbidden_nulls(array, lance_field) == count
