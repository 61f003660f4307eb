"""Schemas show fields, ids and Arrow types as in official releases."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given

from lancelake.errors import InvalidRequestError
from lancelake.format.schema import DictionaryPage, Field, Schema
from lancelake.pylance.schema import LanceSchema, to_schema
from tests.strategies import format_values

PRIMARY = "lance-schema:unenforced-primary-key"
CLUSTERING = "lance-schema:unenforced-clustering-key:position"


def schema(*fields: pa.Field, **metadata: str) -> LanceSchema:
    return LanceSchema.from_pyarrow(pa.schema(fields, metadata))


NESTED = schema(
    pa.field("id", pa.int64()),
    pa.field("Pos", pa.struct([pa.field("x.y", pa.int32()), pa.field("Z", pa.int32())])),
)


def test_fields_are_numbered_before_their_children():
    numbers = [(f.name(), f.id(), [c.id() for c in f.children()]) for f in NESTED.fields()]

    assert numbers == [("id", 0, []), ("Pos", 1, [2, 3])]


@pytest.mark.parametrize("path", ["Pos", "Pos.Z", "Pos.`x.y`"])
def test_a_field_is_found_by_its_path(path):
    found = NESTED.field(path)

    assert found is not None and found.name() == path.removeprefix("Pos.").strip("`")


@pytest.mark.parametrize("path", ["pos", "Pos.z", "Pos.x.y", "nothing", "`open", ""])
def test_a_path_in_another_case_or_to_nowhere_finds_nothing(path):
    assert NESTED.field(path) is None


@pytest.mark.parametrize("path", ["POS", "pos.z", "pos.`X.Y`"])
def test_case_can_be_ignored(path):
    assert NESTED.field_case_insensitive(path) is not None


def test_the_field_in_the_very_case_goes_first():
    both = schema(pa.field("a", pa.int32()), pa.field("A", pa.int32()))

    found = both.field_case_insensitive("A")

    assert found is not None and found.id() == 1


def test_json_is_shown_as_data_files_keep_it():
    shown = schema(pa.field("doc", pa.json_())).to_pyarrow().field("doc")

    assert shown.type == pa.large_binary()
    assert shown.metadata[b"ARROW:extension:name"] == b"lance.json"


def test_other_extension_types_are_shown_as_themselves():
    shown = schema(pa.field("id", pa.uuid())).to_pyarrow()

    assert shown.field("id").type == pa.uuid()


def test_an_arrow_schema_comes_back_with_its_metadata():
    arrow = pa.schema([pa.field("a", pa.int8(), metadata={"k": "v"})], {"m": "n"})

    assert LanceSchema.from_pyarrow(arrow).to_pyarrow().equals(arrow, check_metadata=True)


def test_a_field_turns_into_an_arrow_field():
    (field,) = schema(pa.field("a", pa.int8(), nullable=False)).fields()

    assert field.to_arrow() == pa.field("a", pa.int8(), nullable=False)


def test_metadata_of_a_field_is_text():
    (field,) = schema(pa.field("a", pa.int8(), metadata={"k": "v"})).fields()

    assert field.metadata == {"k": "v"}


def test_the_primary_key_is_listed_in_key_order():
    keys = schema(
        pa.field("b", pa.int8(), False, {f"{PRIMARY}:position": "2"}),
        pa.field("a", pa.int8(), False, {f"{PRIMARY}:position": "1"}),
        pa.field("c", pa.int8()),
    )

    assert [f.name() for f in keys.unenforced_primary_key()] == ["a", "b"]
    assert [f.unenforced_primary_key_position() for f in keys.fields()] == [2, 1, None]
    assert [f.is_unenforced_primary_key() for f in keys.fields()] == [True, True, False]


def test_a_primary_key_without_a_place_has_no_position():
    (field,) = schema(pa.field("a", pa.int8(), False, {PRIMARY: "true"})).fields()

    assert (field.is_unenforced_primary_key(), field.unenforced_primary_key_position()) == (
        True,
        None,
    )


def test_the_clustering_key_is_listed_in_key_order():
    keys = schema(
        pa.field("b", pa.int8(), metadata={CLUSTERING: "2"}),
        pa.field("a", pa.int8(), metadata={CLUSTERING: "1"}),
        pa.field("c", pa.int8(), metadata={CLUSTERING: "x"}),
    )

    assert [f.name() for f in keys.unenforced_clustering_key()] == ["a", "b"]
    assert [f.is_unenforced_clustering_key() for f in keys.fields()] == [True, True, False]


def test_schemas_are_compared_without_their_metadata():
    assert schema(pa.field("a", pa.int8()), k="1") == schema(pa.field("a", pa.int8()), k="2")


@pytest.mark.parametrize(
    "other",
    [
        pa.field("b", pa.int8()),
        pa.field("a", pa.int16()),
        pa.field("a", pa.int8(), nullable=False),
        pa.field("a", pa.int8(), metadata={"k": "v"}),
    ],
)
def test_fields_that_differ_are_not_equal(other):
    assert schema(pa.field("a", pa.int8())) != schema(other)


def test_equal_schemas_have_one_hash():
    first, second = schema(pa.field("a", pa.int8())), schema(pa.field("a", pa.int8()))

    assert len({first, second}) == 1
    assert len({*first.fields(), *second.fields()}) == 1


def test_a_schema_is_not_equal_to_anything_else():
    assert schema() != 3
    assert NESTED.fields()[0] != "id"


def test_a_schema_is_printed_as_official_releases_print_it():
    shown = repr(schema(pa.field("id", pa.int64(), False, {PRIMARY: "true"}), k="v"))

    assert shown == (
        'Schema { fields: [Field { name: "id", id: 0, parent_id: -1, '
        'logical_type: LogicalType("int64"), '
        'metadata: {"lance-schema:unenforced-primary-key": "true"}, encoding: Some(Plain), '
        "nullable: false, children: [], dictionary: None, "
        "unenforced_primary_key_position: Some(0), unenforced_clustering_key_position: None }], "
        'metadata: {"k": "v"} }'
    )


def test_special_characters_of_names_are_escaped():
    (field,) = schema(pa.field('q"\\\n\té\u200b', pa.int8())).fields()

    assert repr(field).startswith('Field { name: "q\\"\\\\\\n\\té\\u{200b}", id: 0')


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        (None, "None"),
        (DictionaryPage(offset=0, length=0), "None"),
        (
            DictionaryPage(offset=7, length=2),
            "Some(Dictionary { offset: 7, length: 2, values: None })",
        ),
    ],
)
def test_a_dictionary_is_printed_with_its_place(page, shown):
    field = Field(name="d", id=0, logical_type="dict:string:int8:false", dictionary=page)

    assert f"dictionary: {shown}, " in repr(LanceSchema(Schema(fields=(field,))))


@pytest.mark.parametrize("name", ["a.b", "_rowid"])
def test_a_name_that_no_column_may_have_is_refused(name):
    with pytest.raises(InvalidRequestError):
        schema(pa.field(name, pa.int8()))


def test_anything_but_an_arrow_schema_is_refused():
    with pytest.raises(TypeError):
        LanceSchema.from_pyarrow(["a"])


def test_the_schema_of_the_format_is_given_back_as_it_came():
    inner = to_schema(NESTED)

    assert to_schema(LanceSchema(inner)) is inner


def test_an_arrow_schema_stands_for_the_schema_of_a_new_table():
    arrow = pa.schema([pa.field("a", pa.int8())])

    assert to_schema(arrow) == to_schema(LanceSchema.from_pyarrow(arrow))


@given(format_values.schemas())
def test_pickle_keeps_everything(inner):
    assert to_schema(pickle.loads(pickle.dumps(LanceSchema(inner)))) == inner


@given(format_values.schemas())
def test_every_schema_can_be_printed_and_compared(inner):
    assert repr(LanceSchema(inner)).startswith("Schema { fields: [")
    assert LanceSchema(inner) == LanceSchema(inner)
