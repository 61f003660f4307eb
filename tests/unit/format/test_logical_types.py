"""Type strings and Arrow types convert as in official releases."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format.logical_types import from_arrow, to_arrow

MEMBERS = [pa.field("x", pa.int32())]
BFLOAT16_ITEM = pa.field(
    "item",
    pa.binary(2),
    metadata={"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""},
)
TYPES = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "decimal:128:10:2": pa.decimal128(10, 2),
    "decimal:128:38:-3": pa.decimal128(38, -3),
    "decimal:256:50:5": pa.decimal256(50, 5),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    "timestamp:us:-": pa.timestamp("us"),
    "timestamp:ns:UTC": pa.timestamp("ns", "UTC"),
    "timestamp:s:+05:30": pa.timestamp("s", "+05:30"),
    "duration:ms": pa.duration("ms"),
    "fixed_size_binary:0": pa.binary(0),
    "fixed_size_binary:16": pa.binary(16),
    "fixed_size_list:float:4": pa.list_(pa.float32(), 4),
    "fixed_size_list:fixed_size_list:float:2:3": pa.list_(pa.list_(pa.float32(), 2), 3),
    "fixed_size_list:decimal:128:5:1:2": pa.list_(pa.decimal128(5, 1), 2),
    "fixed_size_list:timestamp:us:+05:30:2": pa.list_(pa.timestamp("us", "+05:30"), 2),
    "fixed_size_list:dict:string:int8:false:2": pa.list_(pa.dictionary(pa.int8(), pa.string()), 2),
    "fixed_size_list:lance.bfloat16:4": pa.list_(BFLOAT16_ITEM, 4),
    "fixed_size_list:fixed_size_list:lance.bfloat16:4:2": pa.list_(pa.list_(BFLOAT16_ITEM, 4), 2),
    "dict:string:int32:false": pa.dictionary(pa.int32(), pa.string()),
    "dict:int64:uint8:false": pa.dictionary(pa.uint8(), pa.int64()),
    "dict:null:int8:false": pa.dictionary(pa.int8(), pa.null()),
}
NESTED = {
    "struct": (pa.struct(MEMBERS), MEMBERS),
    "list": (pa.list_(pa.field("el", pa.int8())), [pa.field("el", pa.int8())]),
    "large_list": (pa.large_list(pa.int8()), [pa.field("item", pa.int8())]),
    "list.struct": (pa.list_(pa.struct(MEMBERS)), [pa.field("item", pa.struct(MEMBERS))]),
    "large_list.struct": (
        pa.large_list(pa.struct(MEMBERS)),
        [pa.field("item", pa.struct(MEMBERS))],
    ),
    "fixed_size_list:struct:2": (
        pa.list_(pa.struct(MEMBERS), 2),
        [pa.field("item", pa.struct(MEMBERS))],
    ),
    "map": (
        pa.map_(pa.string(), pa.int8()),
        [
            pa.field(
                "entries",
                pa.struct([pa.field("key", pa.string(), False), pa.field("value", pa.int8())]),
                nullable=False,
            )
        ],
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_a_name_stands_for_its_type(name):
    assert to_arrow(name).equals(TYPES[name], check_metadata=True)


@pytest.mark.parametrize("name", TYPES)
def test_a_type_has_its_name(name):
    assert from_arrow(TYPES[name]) == name


@pytest.mark.parametrize("name", NESTED)
def test_a_name_and_children_stand_for_a_nested_type(name):
    dtype, children = NESTED[name]

    assert to_arrow(name, children).equals(dtype, check_metadata=True)


@pytest.mark.parametrize("name", NESTED)
def test_a_nested_type_has_its_name(name):
    dtype, _ = NESTED[name]

    assert from_arrow(dtype) == name


@pytest.mark.parametrize("name", ["blob", "json"])
def test_blobs_and_json_are_kept_as_large_binary(name):
    assert to_arrow(name) == pa.large_binary()


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (pa.string_view(), "string"),
        (pa.binary_view(), "binary"),
        (pa.list_(pa.string_view(), 2), "fixed_size_list:string:2"),
        (pa.dictionary(pa.int8(), pa.string_view()), "dict:string:int8:false"),
        (pa.dictionary(pa.int8(), pa.string(), ordered=True), "dict:string:int8:false"),
        (pa.timestamp("us", "-"), "timestamp:us:-"),
        (pa.list_(pa.uuid(), 2), "fixed_size_list:fixed_size_binary:16:2"),
        (pa.list_(pa.json_(), 2), "fixed_size_list:string:2"),
        (pa.list_(pa.opaque(pa.struct(MEMBERS), "t", "v")), "list.struct"),
        (pa.list_(pa.field("x", pa.float32(), nullable=False), 2), "fixed_size_list:float:2"),
    ],
)
def test_types_that_the_format_cannot_distinguish_have_one_name(dtype, name):
    assert from_arrow(dtype) == name


def test_only_two_bytes_make_a_bfloat16():
    item = pa.field("item", pa.binary(4), metadata=BFLOAT16_ITEM.metadata)

    assert from_arrow(pa.list_(item, 3)) == "fixed_size_list:fixed_size_binary:4:3"


@pytest.mark.parametrize(
    "dtype",
    [
        pa.decimal32(5, 2),
        pa.decimal64(10, 2),
        pa.month_day_nano_interval(),
        pa.list_view(pa.int32()),
        pa.large_list_view(pa.int32()),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.dense_union([pa.field("a", pa.int8())]),
        pa.map_(pa.string(), pa.int8(), keys_sorted=True),
        pa.list_(pa.float32(), 0),
        pa.list_(pa.list_(pa.int8(), 0), 2),
        pa.list_(pa.list_(pa.int8()), 2),
        pa.list_(pa.map_(pa.string(), pa.int8()), 2),
        pa.list_(pa.list_(pa.struct(MEMBERS), 2), 3),
        pa.dictionary(pa.int8(), pa.date32()),
        pa.dictionary(pa.int8(), pa.decimal128(5, 2)),
        pa.dictionary(pa.int8(), pa.timestamp("us", "UTC")),
        pa.dictionary(pa.int8(), pa.list_(pa.int8())),
        pa.dictionary(pa.int8(), pa.struct(MEMBERS)),
        pa.dictionary(pa.int8(), pa.dictionary(pa.int8(), pa.string())),
        pa.uuid(),
    ],
    ids=str,
)
def test_a_type_without_a_place_in_the_format_is_refused(dtype):
    with pytest.raises(UnsupportedError):
        from_arrow(dtype)


@pytest.mark.parametrize("name", ["", "int128", "interval:month", "list.list", "decimal32:5:2"])
def test_a_name_that_is_not_known_is_not_supported(name):
    with pytest.raises(UnsupportedError):
        to_arrow(name)


@pytest.mark.parametrize(
    "name",
    [
        "list",
        "map",
        "fixed_size_list:struct:2",
        "fixed_size_binary:",
        "fixed_size_binary:-1",
        "fixed_size_binary: 1",
        "fixed_size_binary:2147483648",
        "fixed_size_list:float",
        "fixed_size_list:float:x",
        "decimal:128:39:0",
        "decimal:64:5:2",
        "decimal:128:5",
        "timestamp:us",
        "timestamp:h:UTC",
        "dict:string:int8",
        "dict:string:string:false",
        "fixed_size_list:" * 5000 + "int8" + ":1" * 5000,
        "dict:" * 5000 + "int8" + ":int8:false" * 5000,
    ],
    ids=lambda name: name[:30],
)
def test_a_name_that_is_not_well_formed_is_damage(name):
    with pytest.raises(CorruptTableError):
        to_arrow(name)
