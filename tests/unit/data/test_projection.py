"""The fields read from each file."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.data.column_reader import columns_of, project, prune, split, stored_schema
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.schema import Schema

SCHEMA = from_arrow(
    pa.schema(
        [
            ("a", pa.int64()),
            ("st", pa.struct([("x", pa.int64()), ("in", pa.struct([("z", pa.int64())]))])),
            ("ls", pa.list_(pa.struct([("p", pa.int64()), ("q", pa.int64())]))),
            ("b", pa.string()),
            pa.field(
                "packed", pa.struct([("m", pa.int8())]), metadata={"lance-encoding:packed": "true"}
            ),
        ]
    )
)
# Ids: a 0, st 1, st.x 2, st.in 3, st.in.z 4, ls 5, item 6, p 7, q 8, b 9, packed 10, m 11.


def names(schema: Schema) -> list[str]:
    columns = {i for field in schema.fields for i in columns_of(field)}
    return [schema.path_of(node.id) or "" for node in schema.walk() if node.id in columns]


@pytest.mark.parametrize(
    ("paths", "kept"),
    [
        ((("a",),), ["a"]),
        ((("b",), ("a",)), ["a", "b"]),
        ((("st",),), ["st.x", "st.in.z"]),
        ((("st", "in"),), ["st.in.z"]),
        ((("st", "x"), ("st", "in", "z")), ["st.x", "st.in.z"]),
        ((("ls",),), ["ls.item.p", "ls.item.q"]),
        ((("packed",),), ["packed"]),
        ((), []),
        ((("nosuch",), ("st", "nosuch"), ("_rowid",)), []),
    ],
)
def test_schema_is_cut_down_to_paths(paths: tuple[tuple[str, ...], ...], kept: list[str]) -> None:
    assert names(project(SCHEMA, paths)) == kept


def test_a_projection_to_all_columns_is_the_schema_itself() -> None:
    assert project(SCHEMA, tuple((name,) for name in SCHEMA.names)) is SCHEMA


def test_projection_keeps_metadata_of_the_schema() -> None:
    tagged = from_arrow(pa.schema([("a", pa.int64())], metadata={"k": "v"}))
    assert project(tagged, ()).metadata == tagged.metadata


def file(name: str, *ids: int) -> DataFile:
    return DataFile(
        path=name,
        fields=tuple(FieldId(i) for i in ids),
        column_indices=tuple(range(len(ids))),
        file_major_version=2,
        file_minor_version=1,
    )


def parts(files: list[DataFile], schema: Schema = SCHEMA) -> list[tuple[str, list[str]]]:
    fragment = Fragment(id=FragmentId(0), files=tuple(files), physical_rows=1)
    found = split(fragment, schema)
    return [(part.file.path, names(Schema(fields=part.fields))) for part in found]


def test_each_file_supplies_what_it_has() -> None:
    files = [file("1", 0, 1, 2), file("2", 1, 3, 4, 9)]
    assert parts(files) == [("1", ["a", "st.x"]), ("2", ["st.in.z", "b"])]


def test_first_file_with_a_field_supplies_it() -> None:
    assert parts([file("1", 0), file("2", 0, 9)]) == [("1", ["a"]), ("2", ["b"])]


def test_file_without_a_wanted_field_is_not_opened() -> None:
    schema = project(SCHEMA, (("b",),))
    assert parts([file("1", 0), file("2", 9)], schema) == [("2", ["b"])]


def test_tombstone_and_unknown_fields_are_passed_over() -> None:
    assert parts([file("1", -2, 0, 99)]) == [("1", ["a"])]


def test_no_file_has_a_field_that_was_never_written() -> None:
    assert parts([file("1", 0)], project(SCHEMA, (("b",),))) == []


def test_members_of_a_packed_struct_share_its_column() -> None:
    (packed,) = SCHEMA.select(("packed",)).fields
    assert columns_of(packed) == {10}


def test_pruning_everything_leaves_nothing() -> None:
    assert prune(SCHEMA.fields[1], set()) is None


def test_stored_schema_is_what_the_files_hold() -> None:
    fragment = Fragment(id=FragmentId(0), files=(file("1", 0, 1, 2), file("2", 9)))
    assert names(stored_schema(fragment, SCHEMA)) == ["a", "st.x", "b"]
