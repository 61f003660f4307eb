"""JSON of Arrow schemas as exchanged by official releases."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from lancelake.errors import InvalidRequestError
from lancelake.pylance.schema import json_to_schema, schema_to_json

FORMS = {
    pa.int8(): {"type": "int8"},
    pa.float16(): {"type": "halffloat"},
    pa.float64(): {"type": "double"},
    pa.date32(): {"type": "date32:day"},
    pa.timestamp("us"): {"type": "timestamp:us:-"},
    pa.timestamp("ns", "Asia/Kolkata"): {"type": "timestamp:ns:Asia/Kolkata"},
    pa.decimal256(50, 3): {"type": "decimal:256:50:3"},
    pa.binary(7): {"type": "fixed_size_binary", "length": 7},
    pa.dictionary(pa.int8(), pa.string()): {"type": "dict:string:int8:false"},
    pa.struct([]): {"type": "struct", "fields": []},
    pa.list_(pa.float32(), 8): {
        "type": "fixed_size_list",
        "fields": [{"name": "item", "type": {"type": "float"}, "nullable": True}],
        "length": 8,
    },
    pa.list_(pa.field("z", pa.int32(), False)): {
        "type": "list",
        "fields": [{"name": "z", "type": {"type": "int32"}, "nullable": False}],
    },
    pa.large_list(pa.string()): {
        "type": "large_list",
        "fields": [{"name": "item", "type": {"type": "string"}, "nullable": True}],
    },
}


@pytest.mark.parametrize(("dtype", "form"), FORMS.items(), ids=str)
def test_a_type_has_its_form(dtype, form):
    shown = schema_to_json(pa.schema([pa.field("f", dtype)]))

    assert shown == {"fields": [{"name": "f", "type": form, "nullable": True}]}


@pytest.mark.parametrize("dtype", [*FORMS, pa.json_(), pa.uuid()], ids=str)
def test_a_type_comes_back(dtype):
    schema = pa.schema([pa.field("f", dtype, metadata={"k": "v"})], {"m": "n"})

    back = json_to_schema(json.loads(json.dumps(schema_to_json(schema))))

    assert back.equals(schema, check_metadata=True)


def test_metadata_is_left_out_where_there_is_none():
    assert "metadata" not in schema_to_json(pa.schema([]))


@pytest.mark.parametrize(
    "dtype", [pa.map_(pa.string(), pa.int8()), pa.string_view(), pa.month_day_nano_interval()]
)
def test_a_type_without_a_form_is_refused(dtype):
    with pytest.raises(ValueError, match=r"form|place"):
        schema_to_json(pa.schema([pa.field("f", dtype)]))


def one(dtype: object) -> dict[str, object]:
    return {"fields": [{"name": "f", "type": dtype, "nullable": True}]}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"fields": 3},
        {"fields": [{"name": "f", "nullable": True}]},
        {"fields": [{"name": "f", "type": {"type": "int8"}}]},
        one("int8"),
        one({"type": "list"}),
        one({"type": "fixed_size_list:float:4"}),
    ],
)
def test_json_that_does_not_describe_a_schema_is_refused(body):
    with pytest.raises(InvalidRequestError):
        json_to_schema(body)


@pytest.mark.parametrize("name", ["foo", "INT8"])
def test_a_type_that_is_not_known_is_refused(name):
    with pytest.raises(ValueError, match="unknown type"):
        json_to_schema(one({"type": name}))
