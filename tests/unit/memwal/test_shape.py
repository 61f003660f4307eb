from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import FileVersion
from lancelake.memwal.shape import RowShape, live
from tests.support.memwal_tables import KEY, SCHEMA, keys, newest, rows

SHAPE = RowShape(table=from_arrow(SCHEMA), data_version=FileVersion.V2_1, keys=("id",))


def _table(tmp_path: Path, schema: pa.Schema) -> RowShape:
    lance.write_dataset(schema.empty_table(), tmp_path / "t")
    return RowShape.of(newest(tmp_path / "t"))


def test_upserts_have_no_tombstones() -> None:
    (batch,) = SHAPE.upserts(rows((1, "a")))
    assert batch.to_pylist() == [{"id": 1, "name": "a", "_tombstone": False}]


def test_tombstones_have_the_key_only() -> None:
    (batch,) = SHAPE.tombstones(keys(7))
    assert batch.to_pylist() == [{"id": 7, "name": None, "_tombstone": True}]
    assert live(batch).num_rows == 0


def test_columns_may_come_in_any_order() -> None:
    (batch,) = SHAPE.upserts(rows((1, "a")).select(["name", "id"]))
    assert batch.schema.names == ["id", "name", "_tombstone"]


def test_no_rows_are_no_batches() -> None:
    assert SHAPE.upserts(rows()) == SHAPE.tombstones(keys()) == ()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (keys(1), "name is missing"),
        (rows((1, "a")).append_column("x", [[1]]), "x"),
        (pa.table({"id": ["1"], "name": ["a"]}), "id"),
    ],
)
def test_other_columns_are_refused(data: pa.Table, problem: str) -> None:
    with pytest.raises(SchemaMismatchError, match=problem):
        SHAPE.upserts(data)


def test_a_null_key_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="key column id has nulls"):
        SHAPE.upserts(pa.table({"id": pa.array([None], pa.int64()), "name": ["a"]}))


def test_rows_of_a_renamed_column_are_found_by_field_id() -> None:
    (batch,) = SHAPE.upserts(rows((1, "a")))
    old, new = SHAPE.table.fields[1], replace(SHAPE.table.fields[1], name="label")
    renamed = replace(SHAPE, table=replace(SHAPE.table, fields=(SHAPE.table.fields[0], new)))
    assert old.id == new.id
    assert renamed.adopted(batch).column("label").to_pylist() == ["a"]


def test_an_added_column_is_null_in_earlier_rows() -> None:
    (batch,) = SHAPE.upserts(rows((1, "a")))
    wide = from_arrow(SCHEMA.append(pa.field("x", pa.int32())))
    assert replace(SHAPE, table=wide).adopted(batch).column("x").to_pylist() == [None]


def test_rows_of_a_column_of_another_type_are_refused() -> None:
    (batch,) = SHAPE.upserts(rows((1, "a")))
    other = from_arrow(SCHEMA.set(1, pa.field("name", pa.int64())))
    with pytest.raises(UnsupportedError, match="type cannot change"):
        replace(SHAPE, table=other).adopted(batch)


def test_entries_of_early_releases_have_no_ids_and_no_tombstones() -> None:
    batch = pa.record_batch({"id": [1], "name": ["a"]})
    assert SHAPE.adopted(batch).to_pylist() == [{"id": 1, "name": "a", "_tombstone": False}]


def test_a_table_without_a_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="primary key"):
        _table(tmp_path, pa.schema([("id", pa.int64())]))


@pytest.mark.parametrize("kind", [pa.date32(), pa.float64(), pa.timestamp("us")])
def test_key_types_that_no_release_takes_are_refused(tmp_path: Path, kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="cannot be the key of a MemWAL"):
        _table(tmp_path, pa.schema([pa.field("id", kind, nullable=False, metadata=KEY)]))


def test_a_column_named_like_the_mark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="_tombstone"):
        _table(tmp_path, SCHEMA.append(pa.field("_tombstone", pa.bool_())))


def test_a_column_of_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="JSON"):
        _table(tmp_path, SCHEMA.append(pa.field("j", pa.json_())))
