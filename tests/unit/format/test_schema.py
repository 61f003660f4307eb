"""Lookup of schema fields by id and path, and their kinds."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from lancelake.errors import InvalidRequestError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.schema import Field, Schema, quote_segment, split_path

POINT = pa.struct([pa.field("x", pa.float32()), pa.field("a.b", pa.float32())])
SCHEMA = from_arrow(
    pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("Name", pa.string()),
            pa.field("name", pa.string()),
            pa.field("point", POINT),
            pa.field("tick`ed", pa.list_(pa.int8())),
        ]
    )
)


def field(logical_type: str, **metadata: bytes) -> Field:
    return Field(
        name="c",
        id=FieldId(0),
        logical_type=logical_type,
        metadata=FrozenMap({k.replace("__", ":"): v for k, v in metadata.items()}),
    )


def key(name: str, field_id: int, position: int = 0) -> Field:
    return Field(
        name=name,
        id=FieldId(field_id),
        logical_type="int32",
        unenforced_primary_key=True,
        unenforced_primary_key_position=position,
    )


def test_walking_meets_parents_before_children():
    assert [node.id for node in SCHEMA.walk()] == [0, 1, 2, 3, 4, 5, 6, 7]


def test_the_highest_id_is_found_at_any_depth():
    assert SCHEMA.max_field_id == 7


def test_an_empty_schema_has_no_highest_id():
    assert Schema(fields=()).max_field_id == -1


def test_a_node_is_found_by_id():
    assert SCHEMA.by_id()[FieldId(4)].name == "x"


def test_of_two_nodes_with_one_id_the_first_is_found():
    first, second = (replace(SCHEMA.fields[0], name=name) for name in ("first", "second"))

    assert Schema(fields=(first, second)).by_id()[FieldId(0)] is first


@pytest.mark.parametrize(
    ("path", "ids"),
    [
        ("id", [0]),
        ("ID", [0]),
        ("name", [2]),
        ("Name", [1]),
        ("NAME", [1]),
        ("point.x", [3, 4]),
        ("Point.X", [3, 4]),
        ("point.`a.b`", [3, 5]),
        ("`point`.x", [3, 4]),
        ("`tick``ed`.item", [6, 7]),
    ],
)
def test_a_path_leads_to_its_node(path, ids):
    assert [node.id for node in SCHEMA.resolve(path)] == ids


@pytest.mark.parametrize("path", ["", "nothing", "point.z", "id.x", "point.a.b"])
def test_a_path_that_leads_nowhere_finds_nothing(path):
    assert SCHEMA.find(path) is None


def test_a_path_that_leads_nowhere_does_not_resolve():
    with pytest.raises(InvalidRequestError, match="nothing does not exist"):
        SCHEMA.resolve("nothing")


@pytest.mark.parametrize("field_id", [node.id for node in SCHEMA.walk()])
def test_the_path_of_a_node_leads_to_it(field_id):
    path = SCHEMA.path_of(field_id)

    assert path is not None
    assert SCHEMA.resolve(path)[-1].id == field_id


def test_a_node_that_is_not_there_has_no_path():
    assert SCHEMA.path_of(99) is None


def test_columns_are_selected_in_the_order_asked_for():
    assert SCHEMA.select(("point", "id")).names == ("point", "id")


def test_a_column_that_is_not_there_cannot_be_selected():
    with pytest.raises(InvalidRequestError):
        SCHEMA.select(("nothing",))


@pytest.mark.parametrize("path", ["`a", "`a`b", "a.`b", "`a`.`"])
def test_a_path_with_unbalanced_backticks_is_refused(path):
    with pytest.raises(InvalidRequestError):
        split_path(path)


@pytest.mark.parametrize("name", ["a", "a.b", "a`b", "`", ".", "", "``.``"])
def test_a_quoted_segment_is_cut_out_again(name):
    assert split_path(quote_segment(name)) == (name,)


def test_key_fields_come_by_position_and_then_by_id():
    fields = (key("d", 4), key("a", 1, position=2), key("c", 2), key("b", 3, position=1))

    assert [f.name for f in Schema(fields=fields).primary_key()] == ["b", "a", "c", "d"]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (field("struct", packed=b"true"), True),
        (field("struct", **{"lance-encoding__packed": b"TRUE"}), True),
        (field("struct", packed=b"false"), False),
        (field("struct"), False),
        (field("list", packed=b"true"), False),
    ],
)
def test_a_struct_is_packed_by_its_metadata(node, expected):
    assert node.is_packed is expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (field("large_binary", **{"lance-encoding__blob": b"true"}), True),
        (field("large_binary", **{"lance-encoding__blob": b"false"}), True),
        (field("blob"), True),
        (field("large_binary"), False),
        (field("struct", **{"lance-encoding__blob": b"true"}), False),
    ],
)
def test_a_blob_of_the_first_kind_is_marked_by_a_key(node, expected):
    assert node.is_blob_v1 is expected


def test_a_blob_of_the_second_kind_is_an_extension_type():
    assert field("struct", ARROW__extension__name=b"lance.blob.v2").is_blob_v2


def test_json_is_a_type_of_its_own():
    assert field("json").is_json


def test_a_node_without_children_owns_a_column():
    assert field("int32").owns_column


def test_a_node_with_children_owns_no_column():
    assert not SCHEMA.resolve("point")[0].owns_column


def test_a_packed_struct_owns_its_column():
    packed = replace(SCHEMA.resolve("point")[0], metadata=FrozenMap({"packed": b"true"}))

    assert packed.owns_column


def test_a_schema_survives_pickling():
    assert pickle.loads(pickle.dumps(SCHEMA)) == SCHEMA
