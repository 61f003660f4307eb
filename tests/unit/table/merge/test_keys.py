from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.schema import Field
from lancelake.table.merge.source import (
    Comparer,
    comparable_type,
    describe_key,
    is_complete,
    key_fields,
)

SCHEMA = from_arrow(
    pa.schema(
        [
            ("id", pa.int64()),
            ("Id2", pa.string()),
            ("f", pa.float64()),
            ("d", pa.dictionary(pa.int8(), pa.string())),
            ("list", pa.list_(pa.int64())),
            ("nothing", pa.null()),
            ("x", pa.int32()),
            ("X", pa.int32()),
        ]
    )
)


def _field(name: str) -> Field:
    return next(field for field in SCHEMA.fields if field.name == name)


def _compared(values: pa.Array, name: str) -> pa.Array:
    return Comparer.of(_field(name))(values)


@pytest.mark.parametrize(
    ("asked", "found"), [("id", "id"), ("ID", "id"), ("id2", "Id2"), ("X", "X")]
)
def test_a_column_is_found_whatever_its_case_unless_there_are_two(asked: str, found: str) -> None:
    assert [field.name for field in key_fields([asked], SCHEMA)] == [found]


@pytest.mark.parametrize(
    ("on", "kind", "problem"),
    [
        (["missing"], InvalidRequestError, "'missing' does not exist in schema"),
        (["id", "ID"], InvalidRequestError, "twice"),
        (["list"], UnsupportedError, "column list of type list"),
        (["nothing"], UnsupportedError, "is not supported as a merge key"),
    ],
)
def test_what_can_be_no_key_is_refused(on: list[str], kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem):
        key_fields(on, SCHEMA)


def test_floats_are_compared_by_their_bits() -> None:
    found = _compared(pa.array([0.0, -0.0, float("nan")]), "f")
    assert found.type == pa.int64()
    assert len(set(found.to_pylist())) == 3


def test_dictionaries_are_compared_by_their_values() -> None:
    values = pa.array(["a", "b", "a"])
    assert comparable_type(_field("d")) == pa.string()
    assert _compared(values.dictionary_encode(), "d").equals(values)


def test_numbers_of_another_width_are_compared_as_the_tables() -> None:
    found = Comparer.of(_field("id")).whole(pa.chunked_array([pa.array([1, 2], pa.int8())]))
    assert found.type == pa.int64()


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("id", pa.array(["1", "2"])),
        ("id", pa.array([True])),
        ("id", pa.array([1.5])),
        ("x", pa.array([1 << 40])),
        ("Id2", pa.array([1])),
        ("Id2", pa.array([b"a"])),
    ],
    ids=str,
)
def test_values_that_do_not_fit_the_column_are_refused(column: str, values: pa.Array) -> None:
    with pytest.raises(SchemaMismatchError, match=f"Can't cast values of key column {column} to"):
        _compared(values, column)


def test_a_key_is_complete_when_no_part_is_null() -> None:
    found = is_complete([pa.array([1, None, 3]), pa.array(["a", "b", None])])
    assert found.to_pylist() == [True, False, False]


def test_a_key_is_shown_with_its_columns() -> None:
    fields = key_fields(["id", "Id2"], SCHEMA)
    assert describe_key([7, "x"], fields) == "id = 7, Id2 = 'x'"
