"""Schema evolution with unused field ids."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.errors import (
    InvalidNameError,
    InvalidRequestError,
    LanceTableError,
    SchemaMismatchError,
    UnsupportedError,
)
from lancelake.format import evolution
from lancelake.format.arrow_schema import from_arrow, storage_schema
from lancelake.format.evolution import Alteration
from lancelake.format.fragment import DataFile, FileVersion, Fragment
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.schema import Field, Schema

ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("pair", pa.struct([("x", pa.int8()), ("y", pa.string())])),
        pa.field("list", pa.list_(pa.struct([("p", pa.int8())]))),
        pa.field("packed", pa.struct([("q", pa.int8())]), metadata={"packed": "true"}),
    ],
    metadata={"kept": "1"},
)
SCHEMA = from_arrow(ARROW)
FRESH = 20


def widened(*fields: pa.Field, version: FileVersion = FileVersion.V2_2) -> evolution.Widened:
    """Add columns."""
    new = from_arrow(pa.schema(fields))
    return evolution.widen(SCHEMA, new, first_id=FRESH, version=version)


def retyped(data_type: pa.DataType) -> Field:
    """Return a field of a type."""
    return from_arrow(pa.schema([("value", data_type)])).fields[0]


def ids(schema: Schema) -> list[tuple[str, int, int]]:
    """Return names with ids and those of parents."""
    return [(f.name, f.id, f.parent_id) for f in schema.walk()]


def test_new_columns_are_numbered_in_order() -> None:
    more = pa.field("more", pa.struct([("a", pa.int8()), ("b", pa.list_(pa.int8()))]))
    assert ids(widened(more).added) == [
        ("more", 20, -1),
        ("a", 21, 20),
        ("b", 22, 20),
        ("item", 23, 22),
    ]


def test_new_members_go_to_the_end_of_their_struct() -> None:
    wide = widened(pa.field("pair", pa.struct([("z", pa.int8())])))
    assert ids(wide.added) == [("pair", 1, -1), ("z", 20, 1)]
    assert [f.name for f in wide.schema.fields[1].children] == ["x", "y", "z"]


def test_structs_in_lists_can_get_members() -> None:
    wide = widened(pa.field("list", pa.list_(pa.struct([("r", pa.int8())]))))
    assert ids(wide.added) == [("list", 4, -1), ("item", 5, 4), ("r", 20, 5)]


@pytest.mark.parametrize(
    ("field", "version", "error"),
    [
        (pa.field("id", pa.int64()), FileVersion.V2_2, InvalidRequestError),
        (pa.field("id", pa.int8()), FileVersion.V2_2, SchemaMismatchError),
        (pa.field("pair", pa.struct([("x", pa.int8())])), FileVersion.V2_2, InvalidRequestError),
        (pa.field("pair", pa.struct([("z", pa.int8())])), FileVersion.V2_1, UnsupportedError),
        (pa.field("packed", pa.struct([("r", pa.int8())])), FileVersion.V2_2, InvalidRequestError),
    ],
    ids=["name", "type", "member", "version", "packed"],
)
def test_a_column_cannot_be_added(
    field: pa.Field, version: FileVersion, error: type[LanceTableError]
) -> None:
    with pytest.raises(error):
        widened(field, version=version)


def test_ids_in_files_are_taken() -> None:
    file = DataFile(
        path="a", fields=(FieldId(30), FieldId(-2)), file_major_version=2, file_minor_version=1
    )
    fragment = Fragment(id=FragmentId(0), files=(file,))
    assert evolution.first_free_id(SCHEMA, [fragment]) == 31


def test_a_dropped_member_leaves_its_struct() -> None:
    after = evolution.drop(SCHEMA, ["pair.x", "list.item.p"])
    assert [f.name for f in after.walk()] == ["id", "pair", "y", "packed", "q"]


def test_a_map_keeps_both_members() -> None:
    schema = from_arrow(pa.schema([("m", pa.map_(pa.string(), pa.int8())), ("n", pa.int8())]))
    with pytest.raises(InvalidRequestError):
        evolution.drop(schema, ["m.entries.value"])


def test_a_retyped_field_gets_a_fresh_id_in_its_place() -> None:
    change = Alteration(path="pair.x", retyped=retyped(pa.int16()), name="z")
    after = evolution.alter(SCHEMA, [change], first_id=FRESH)
    assert ids(after.schema)[1:4] == [("pair", 1, -1), ("z", 20, 1), ("y", 3, 1)]
    assert ids(after.before) == [("pair", 1, -1), ("x", 2, 1)]
    assert ids(after.after) == [("pair", 1, -1), ("z", 20, 1)]


def test_a_retyped_field_keeps_whether_it_may_be_null() -> None:
    change = Alteration(path="id", retyped=retyped(pa.int16()))
    after = evolution.alter(SCHEMA, [change], first_id=FRESH)
    assert storage_schema(after.schema).field("id") == pa.field("id", pa.int16(), nullable=False)


def test_changes_of_one_field_add_up() -> None:
    changes = [Alteration(path="id", name="z"), Alteration(path="id", nullable=True)]
    (first, *_) = evolution.alter(SCHEMA, changes, first_id=FRESH).schema.fields
    assert (first.name, first.nullable) == ("z", True)


@pytest.mark.parametrize("name", ["pair", "a.b", "_rowid"])
def test_a_name_may_be_impossible(name: str) -> None:
    with pytest.raises(InvalidNameError):
        evolution.alter(SCHEMA, [Alteration(path="id", name=name)], first_id=FRESH)


def test_a_member_of_a_packed_struct_keeps_its_type() -> None:
    change = Alteration(path="packed.q", retyped=retyped(pa.int16()))
    with pytest.raises(UnsupportedError):
        evolution.alter(SCHEMA, [change], first_id=FRESH)


def test_columns_come_first() -> None:
    assert evolution.reorder(SCHEMA, ["list", "id"]).names == ("list", "id", "pair", "packed")


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (pa.field("n", pa.int8()), False),
        (pa.field("n", pa.int8(), nullable=False), True),
        (pa.field("n", pa.struct([pa.field("m", pa.int8(), nullable=False)])), False),
        (pa.field("pair", pa.struct([pa.field("m", pa.int8(), nullable=False)])), True),
    ],
    ids=["nullable", "not nullable", "below a nullable one", "member of a struct"],
)
def test_new_fields_may_forbid_nulls(field: pa.Field, expected: bool) -> None:
    assert evolution.forbids_more_nulls(SCHEMA, widened(field).schema) is expected


def test_a_struct_that_is_never_null_and_gets_a_member_forbids_nulls() -> None:
    before = from_arrow(pa.schema([pa.field("s", pa.struct([("x", pa.int8())]), nullable=False)]))
    new = from_arrow(pa.schema([pa.field("s", pa.struct([("y", pa.int8())]))]))
    after = evolution.widen(before, new, first_id=FRESH, version=FileVersion.V2_2).schema
    assert evolution.forbids_more_nulls(before, after)


def test_a_field_may_forbid_nulls_from_now_on() -> None:
    change = Alteration(path="pair.x", nullable=False)
    after = evolution.alter(SCHEMA, [change], first_id=FRESH).schema
    assert evolution.forbids_more_nulls(SCHEMA, after)
    assert not evolution.forbids_more_nulls(after, SCHEMA)


def test_an_unknown_column_is_named_in_quotes() -> None:
    with pytest.raises(InvalidRequestError, match='Column "q" does not exist in the dataset'):
        evolution.resolve(SCHEMA, "q")
