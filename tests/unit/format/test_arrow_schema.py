"""Conversion between table schemas and Arrow schemas; unsupported types are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.errors import InvalidNameError, InvalidRequestError, UnsupportedError
from lancelake.format.arrow_schema import (
    RESERVED_NAMES,
    from_arrow,
    public_field,
    public_schema,
    storage_field,
    storage_schema,
)
from lancelake.format.schema import DictionaryPage, Encoding, Field

JSON = {"ARROW:extension:name": "lance.json"}
BLOB = {"ARROW:extension:name": "test.blob"}


def one(dtype: pa.DataType, *, nullable: bool = True, **metadata: str) -> Field:
    named = {key.replace("__", ":"): value for key, value in metadata.items()}
    return from_arrow(pa.schema([pa.field("c", dtype, nullable, named)])).fields[0]


def ids(fields: list[pa.Field], first_id: int = 0) -> list[tuple[str, int, int]]:
    schema = from_arrow(pa.schema(fields), first_id=first_id)
    return [(f.name, f.id, f.parent_id) for f in schema.walk()]


def numbered(name: str, field_id: object, dtype: pa.DataType | None = None) -> pa.Field:
    return pa.field(name, dtype or pa.int8(), metadata={"lance:field_id": str(field_id)})


class TestFromArrow:
    @pytest.mark.parametrize(
        ("dtype", "encoding"),
        [
            (pa.int32(), Encoding.PLAIN),
            (pa.bool_(), Encoding.PLAIN),
            (pa.binary(4), Encoding.PLAIN),
            (pa.list_(pa.int8()), Encoding.PLAIN),
            (pa.list_(pa.string(), 2), Encoding.PLAIN),
            (pa.map_(pa.string(), pa.int8()), Encoding.PLAIN),
            (pa.string(), Encoding.VAR_BINARY),
            (pa.large_binary(), Encoding.VAR_BINARY),
            (pa.json_(), Encoding.VAR_BINARY),
            (pa.dictionary(pa.int8(), pa.string()), Encoding.DICTIONARY),
            (pa.struct([]), Encoding.NONE),
            (pa.null(), Encoding.NONE),
        ],
        ids=str,
    )
    def test_the_encoding_follows_the_type(self, dtype, encoding):
        assert one(dtype).encoding is encoding

    def test_ids_count_in_pre_order(self):
        point = pa.struct([pa.field("x", pa.int8()), pa.field("y", pa.list_(pa.int8()))])

        assert ids([pa.field("a", pa.int8()), pa.field("p", point), pa.field("z", pa.int8())]) == [
            ("a", 0, -1),
            ("p", 1, -1),
            ("x", 2, 1),
            ("y", 3, 1),
            ("item", 4, 3),
            ("z", 5, -1),
        ]

    def test_ids_count_from_the_first_one_asked_for(self):
        assert ids([pa.field("a", pa.list_(pa.int8()))], 7) == [("a", 7, -1), ("item", 8, 7)]

    def test_ids_in_metadata_stand_and_the_rest_count_on(self):
        point = pa.struct([numbered("x", 3), pa.field("y", pa.int8())])
        fields = [numbered("a", 7), pa.field("b", pa.int8()), numbered("s", 2, point)]

        assert ids(fields) == [
            ("a", 7, -1),
            ("b", 8, -1),
            ("s", 2, -1),
            ("x", 3, 2),
            ("y", 9, 2),
        ]

    def test_a_parent_may_count_on_from_its_child(self):
        assert ids([pa.field("a", pa.struct([numbered("x", 0)]))]) == [("a", 1, -1), ("x", 0, 1)]

    @pytest.mark.parametrize("value", ["-1", "-5", "-2147483648"])
    def test_a_negative_id_in_metadata_counts_as_none(self, value):
        assert ids([numbered("a", value)]) == [("a", 0, -1)]

    def test_the_id_of_a_list_item_without_a_field_of_its_own_does_not_count(self):
        assert ids([pa.field("a", pa.list_(numbered("item", 5), 2))]) == [("a", 0, -1)]

    def test_the_key_of_the_id_does_not_stay_in_the_metadata(self):
        assert dict(one(pa.int8(), lance__field_id="4", k="v").metadata) == {"k": b"v"}

    @pytest.mark.parametrize("value", ["x", "", " 7", "1.5", "2147483648"])
    def test_an_id_in_metadata_that_is_no_number_is_refused(self, value):
        with pytest.raises(InvalidRequestError):
            ids([numbered("a", value)])

    def test_an_id_asked_for_twice_is_refused(self):
        with pytest.raises(InvalidRequestError):
            ids([numbered("a", 3), pa.field("b", pa.struct([numbered("x", 3)]))])

    def test_ids_that_run_out_are_refused(self):
        with pytest.raises(InvalidRequestError):
            ids([numbered("a", 2147483647), pa.field("b", pa.int8())])

    def test_a_map_has_entries_of_key_and_value(self):
        field = one(pa.map_(pa.string(), pa.int8()))

        assert [(f.name, f.logical_type, f.nullable) for f in field.walk()] == [
            ("c", "map", True),
            ("entries", "struct", False),
            ("key", "string", False),
            ("value", "int8", True),
        ]

    def test_a_list_of_values_of_fixed_size_has_no_children(self):
        assert one(pa.list_(pa.float32(), 4)).children == ()

    def test_a_list_of_structs_of_fixed_size_keeps_its_item(self):
        item = pa.field("el", pa.struct([pa.field("x", pa.int8())]), nullable=False)

        assert [(f.name, f.nullable) for f in one(pa.list_(item, 2)).walk()] == [
            ("c", True),
            ("el", False),
            ("x", True),
        ]

    def test_a_dictionary_points_to_an_empty_page(self):
        field = one(pa.dictionary(pa.int8(), pa.string()))

        assert field.dictionary == DictionaryPage(offset=0, length=0)

    @pytest.mark.parametrize(
        "field",
        [
            pa.field("c", pa.json_()),
            pa.field("c", pa.json_(pa.large_string())),
            pa.field("c", pa.string(), metadata={"ARROW:extension:name": "arrow.json"}),
            pa.field("c", pa.large_binary(), metadata=JSON),
        ],
        ids=str,
    )
    def test_json_is_known_by_its_extension_type(self, field):
        found = from_arrow(pa.schema([field])).fields[0]

        assert (found.logical_type, found.extension_name) == ("json", "lance.json")

    @pytest.mark.parametrize("dtype", [pa.string(), pa.binary()], ids=str)
    def test_json_of_another_storage_type_is_not_json(self, dtype):
        found = from_arrow(pa.schema([pa.field("c", dtype, metadata=JSON)])).fields[0]

        assert (found.logical_type, found.extension_name) == (str(dtype), "lance.json")

    def test_json_below_the_top_level_is_json(self):
        assert one(pa.list_(pa.json_())).children[0].extension_name == "lance.json"

    def test_an_extension_type_becomes_storage_type_and_metadata(self):
        field = one(pa.uuid(), k="v")

        assert (field.logical_type, dict(field.metadata)) == (
            "fixed_size_binary:16",
            {
                "k": b"v",
                "ARROW:extension:name": b"arrow.uuid",
                "ARROW:extension:metadata": b"",
            },
        )

    def test_marks_of_the_primary_key_are_read_and_stay(self):
        key = "lance-schema__unenforced-primary-key__position"
        field = one(pa.int8(), nullable=False, **{key: "2"})

        assert (
            field.unenforced_primary_key,
            field.unenforced_primary_key_position,
            dict(field.metadata),
        ) == (True, 2, {key.replace("__", ":"): b"2"})

    def test_a_primary_key_that_breaks_the_rules_is_refused(self):
        with pytest.raises(InvalidRequestError):
            one(pa.int8(), **{"lance-schema__unenforced-primary-key": "true"})

    def test_schema_metadata_is_kept(self):
        schema = from_arrow(pa.schema([pa.field("c", pa.int8())], metadata={"k": "v"}))

        assert dict(schema.metadata) == {"k": b"v"}

    def test_a_type_without_a_place_is_refused_with_its_column(self):
        inner = pa.struct([pa.field("x.y", pa.list_(pa.decimal32(5, 2)))])

        with pytest.raises(UnsupportedError, match=r"c\.`x\.y`\.item has type decimal32\(5, 2\)"):
            one(inner)

    def test_a_blob_without_its_fields_is_refused(self):
        with pytest.raises(UnsupportedError, match="fields"):
            one(pa.struct([pa.field("x", pa.int8())]), ARROW__extension__name="lance.blob.v2")

    def test_storage_that_an_extension_type_does_not_take_is_refused(self):
        with pytest.raises(InvalidRequestError):
            one(pa.binary(15), ARROW__extension__name="arrow.uuid")

    def test_a_schema_that_could_not_be_read_back_is_refused(self):
        dtype = pa.int8()
        for _ in range(70):
            dtype = pa.list_(dtype)

        with pytest.raises(UnsupportedError):
            one(dtype)

    def test_a_dot_in_a_top_level_name_is_refused(self):
        with pytest.raises(InvalidNameError):
            ids([pa.field("a.b", pa.int8())])

    def test_a_dot_in_a_member_name_is_taken(self):
        assert ids([pa.field("a", pa.struct([pa.field("b.c", pa.int8())]))])[1][0] == "b.c"

    def test_two_columns_of_one_name_are_refused(self):
        with pytest.raises(InvalidNameError):
            ids([pa.field("a", pa.int8()), pa.field("a", pa.int8())])

    def test_names_that_differ_by_case_are_taken(self):
        assert len(ids([pa.field("a", pa.int8()), pa.field("A", pa.int8())])) == 2

    @pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
    def test_the_name_of_a_meta_column_is_refused(self, name):
        with pytest.raises(InvalidNameError):
            ids([pa.field(name, pa.int8())])

    @pytest.mark.parametrize("metadata", [{b"k": b"\xff"}, {b"\xff": b"v"}], ids=str)
    def test_metadata_that_is_not_text_is_refused(self, metadata):
        with pytest.raises(InvalidRequestError):
            from_arrow(pa.schema([pa.field("c", pa.int8(), metadata=metadata)]))


class TestStorage:
    def test_json_is_kept_as_large_binary(self):
        field = storage_field(one(pa.json_()))

        assert field.equals(
            pa.field("c", pa.large_binary(), metadata={**JSON, "ARROW:extension:metadata": ""}),
            check_metadata=True,
        )

    def test_an_extension_type_stays_metadata(self):
        assert storage_field(one(pa.uuid())).type == pa.binary(16)

    def test_names_nullability_and_metadata_are_kept_at_every_depth(self):
        inner = pa.field("x", pa.string(), nullable=False, metadata={"k": "v"})
        schema = pa.schema(
            [pa.field("a", pa.struct([inner]), nullable=False), pa.field("b", pa.list_(inner))],
            metadata={"s": "t"},
        )

        assert storage_schema(from_arrow(schema)).equals(schema, check_metadata=True)


class TestPublic:
    def test_json_is_shown_as_text(self):
        assert public_field(one(pa.large_binary(), ARROW__extension__name="lance.json")).equals(
            pa.field("c", pa.json_()), check_metadata=True
        )

    def test_json_is_shown_as_text_at_every_depth(self):
        dtype = pa.struct([pa.field("j", pa.list_(pa.json_()))])

        assert public_field(one(dtype)).type == dtype

    @pytest.mark.parametrize(
        "dtype",
        [pa.uuid(), pa.bool8(), pa.list_(pa.uuid()), pa.fixed_shape_tensor(pa.float32(), [2, 2])],
        ids=str,
    )
    def test_a_registered_extension_type_is_shown(self, dtype):
        assert public_field(one(dtype)).type == dtype

    def test_an_unregistered_extension_type_is_shown_as_metadata(self):
        schema = pa.schema([pa.field("c", pa.int8(), metadata=BLOB)])

        assert public_schema(from_arrow(schema)).equals(schema, check_metadata=True)

    def test_schema_metadata_is_shown(self):
        schema = pa.schema([pa.field("c", pa.int8())], metadata={"k": "v"})

        assert public_schema(from_arrow(schema)).metadata == {b"k": b"v"}

    def test_members_of_a_map_are_shown_under_their_arrow_names(self):
        dtype = pa.map_(pa.field("k", pa.string(), nullable=False), pa.field("v", pa.int8()))

        assert public_field(one(dtype)).type.key_field.name == "key"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (pa.map_(pa.string(), pa.int8(), keys_sorted=True), "unsupported map field"),
        (pa.list_(pa.float32(), 0), "dimension must be a positive integer"),
    ],
)
def test_a_type_that_the_format_lacks_is_refused_with_the_reason(
    kind: pa.DataType, reason: str
) -> None:
    with pytest.raises(UnsupportedError, match=f"column x has type .*: .*{reason}"):
        from_arrow(pa.schema([("x", kind)]))
