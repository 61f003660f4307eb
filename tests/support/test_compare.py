"""The comparison detects differences that readers observe."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from tests.support.compare import assert_same_schema, assert_same_table, table_difference

FLAGS = pa.dictionary(pa.int8(), pa.string())
PAIRS = pa.map_(pa.string(), pa.int32())


def difference(left: object, right: object, data_type: pa.DataType) -> str | None:
    sides = [pa.table({"c": pa.array(values, data_type)}) for values in (left, right)]
    return table_difference(*sides)


def test_nan_equals_nan() -> None:
    assert difference([math.nan, None], [math.nan, None], pa.float32()) is None


def test_negative_zero_differs_from_zero() -> None:
    assert difference([-0.0], [0.0], pa.float64()) is not None


def test_null_differs_from_zero() -> None:
    assert difference([None], [0], pa.int32()) is not None


def test_null_list_differs_from_an_empty_one() -> None:
    assert difference([None], [[]], pa.list_(pa.int8())) is not None


def test_null_items_of_fixed_size_lists_are_seen() -> None:
    assert difference([[1, None]], [[1, 2]], pa.list_(pa.int8(), 2)) is not None


def test_members_under_a_null_struct_do_not_count() -> None:
    members, validity = pa.array([1, 2]), pa.array([False, True])
    hidden = pa.StructArray.from_arrays([members], names=["x"], mask=validity)
    shown = pa.array([{"x": 1}, None], hidden.type)
    assert table_difference(pa.table({"c": hidden}), pa.table({"c": shown})) is None


def test_map_values_are_compared() -> None:
    assert difference([[("a", 1)]], [[("a", 2)]], PAIRS) is not None
    assert difference([[("a", 1)], None, []], [[("a", 1)], None, []], PAIRS) is None


def test_dictionaries_are_compared_decoded_whatever_the_chunks() -> None:
    left = pa.chunked_array([pa.array(["a"], FLAGS), pa.array(["b", None], FLAGS)])
    right = pa.chunked_array([pa.array(["b", "a", "b"], FLAGS)[1:], pa.array([None], FLAGS)])
    assert table_difference(pa.table({"c": left}), pa.table({"c": right})) is None


def test_timestamps_python_cannot_hold_are_reported() -> None:
    assert difference([2**62], [2**61], pa.timestamp("s")) is not None


def test_field_metadata_is_part_of_the_schema() -> None:
    fields = [pa.field("c", pa.int8(), metadata={"k": v}) for v in ("1", "2")]
    with pytest.raises(AssertionError, match="schema differs"):
        assert_same_schema(pa.schema(fields[:1]), pa.schema(fields[1:]))


def test_an_extension_equals_its_storage_with_metadata() -> None:
    marked = pa.field("c", pa.string(), metadata={"ARROW:extension:name": "arrow.json"})
    storage = pa.array(["{}"])
    typed = pa.ExtensionArray.from_storage(pa.json_(), storage)
    assert_same_table(
        pa.table([typed], schema=pa.schema([pa.field("c", pa.json_())])),
        pa.table([storage], schema=pa.schema([marked])),
    )


def test_slices_of_nested_arrays_are_compared_by_what_they_show() -> None:
    nested = pa.struct([("l", pa.list_(pa.list_(pa.int8(), 2))), ("m", PAIRS)])
    rows = [{"l": [[1, 2], None], "m": [("a", 1)]}, None, {"l": None, "m": None}]
    shifted = pa.array([rows[0], *rows], nested).slice(1)
    expected = pa.table({"c": pa.array(rows, nested)})
    assert table_difference(pa.table({"c": shifted}), expected) is None


def test_json_inside_structs_is_compared() -> None:
    json = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", None]))
    inner = pa.StructArray.from_arrays([json], names=["j"], mask=pa.array([False, True]))
    table = pa.table({"c": inner})
    assert table_difference(table, table) is None
