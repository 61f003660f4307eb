"""Tests of the schema that the codec gets, and of the columns it makes of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.data.arrays.conform import PREPARED_BLOB, column_ids, file_schema
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import FileVersion

V20, V22 = FileVersion.V2_0, FileVersion.V2_2
I32, F32 = pa.int32(), pa.float32()
PAIR = pa.struct([("x", I32), ("y", I32)])
BLOB = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
MIXED = pa.struct(
    [("l", pa.list_(PAIR)), ("s", pa.struct([("f", pa.list_(F32, 2)), ("m", pa.map_(I32, I32))]))]
)


@pytest.mark.parametrize(
    ("dtype", "in_2_0", "since_2_1"),
    [
        (PAIR, [0, 1, 2], [1, 2]),
        (pa.list_(I32), [0, 1], [1]),
        (pa.list_(PAIR), [0, 1, 2, 3], [2, 3]),
        (pa.list_(pa.list_(I32)), [0, 1, 2], [2]),
        (pa.list_(F32, 4), [0], [0]),
        (pa.dictionary(pa.int8(), pa.string()), [0], [0]),
        (pa.struct([]), [0], [0]),
        (pa.list_(PAIR, 2), None, [2, 3]),
        (pa.map_(pa.string(), PAIR), None, [2, 4, 5]),
        (MIXED, None, [3, 4, 6, 9, 10]),
    ],
    ids=str,
)
def test_columns_belong_to_the_fields_that_official_releases_list(
    dtype: pa.DataType, in_2_0: list[int] | None, since_2_1: list[int]
) -> None:
    schema = from_arrow(pa.schema([("c", dtype)]))
    assert list(column_ids(schema, V22)) == since_2_1
    if in_2_0 is not None:
        assert list(column_ids(schema, V20)) == in_2_0


@pytest.mark.parametrize("version", [V20, V22])
def test_a_packed_struct_is_one_column(version: FileVersion) -> None:
    packed = pa.field("p", PAIR, metadata={"packed": "true"})
    schema = from_arrow(pa.schema([packed, pa.field("b", I32)]))
    assert list(column_ids(schema, version)) == [0, 3]


def test_a_blob_is_one_column_of_prepared_values() -> None:
    blob = pa.field("b", BLOB, metadata={"ARROW:extension:name": "lance.blob.v2"})
    schema = from_arrow(pa.schema([("a", I32), blob, ("c", I32)]))
    assert list(column_ids(schema, V22)) == [0, 1, 4]
    assert file_schema(schema).field("b").type == PREPARED_BLOB


def test_every_field_carries_its_id() -> None:
    table = from_arrow(pa.schema([("a", I32), ("l", pa.list_(PAIR))]), first_id=5)
    arrow = file_schema(table)
    item = arrow.field("l").type.value_field
    found = [f.metadata[b"lance:field_id"] for f in (*arrow, item, *item.type)]
    assert found == [b"5", b"6", b"7", b"8", b"9"]


def test_json_is_binary_under_its_own_name() -> None:
    (column,) = file_schema(from_arrow(pa.schema([("j", pa.json_())])))
    assert column.type == pa.large_binary()
    assert column.metadata[b"ARROW:extension:name"] == b"lance.json"
