"""Columns of a file become columns of the table, whatever their names in the file."""

from __future__ import annotations

import pyarrow as pa

from lancelake.data.column_reader import FileShape, positions_with_nulls
from lancelake.format.fragment import FileVersion

INT = pa.int64()
POSITIONS = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
VALUES = [
    {"position": 64, "size": 3},
    {"position": 0, "size": 0},
    {"position": 65536, "size": 0},
    None,
]


def test_column_of_the_same_type_is_passed_on() -> None:
    array = pa.array([1, None])
    assert FileShape(file_name="x", target=INT).apply(array) is array


def test_leaf_is_cast() -> None:
    found = FileShape(file_name="x", target=INT).apply(pa.array([1, None], pa.int32()))
    assert (found.type, found.to_pylist()) == (INT, [1, None])


def test_members_are_found_by_their_name_in_the_file_in_any_order() -> None:
    array = pa.array(
        [{"old": 1, "b": "x"}, None], pa.struct([("old", INT), ("b", pa.string()), ("gone", INT)])
    )
    target = pa.struct([("b", pa.string()), ("new", INT)])
    members = (
        FileShape(file_name="b", target=pa.string()),
        FileShape(file_name="old", target=INT),
    )
    found = FileShape(file_name="s", target=target, children=members).apply(array)
    assert found.type == target
    assert found.to_pylist() == [{"b": "x", "new": 1}, None]


def test_members_inside_lists_are_renamed() -> None:
    stored = pa.list_(pa.struct([("old", INT)]))
    array = pa.array([[{"old": 1}, None], [], None, [{"old": None}]], stored)
    item = pa.struct([("new", INT)])
    member = FileShape(file_name="old", target=INT)
    shape = FileShape(
        file_name="l",
        target=pa.list_(item),
        children=(FileShape(file_name="item", target=item, children=(member,)),),
    )
    expected = [[{"new": 1}, None], [], None, [{"new": None}]]
    assert shape.apply(array).to_pylist() == expected
    assert shape.apply(array.slice(1)).to_pylist() == expected[1:]


def test_items_of_fixed_size_lists_are_cast_in_slices() -> None:
    array = pa.array([[1, 2], None, [3, None]], pa.list_(pa.int8(), 2))
    shape = FileShape(
        file_name="v",
        target=pa.list_(pa.int16(), 2),
        children=(FileShape(file_name="item", target=pa.int16()),),
    )
    assert shape.apply(array.slice(1)).to_pylist() == [None, [3, None]]


def with_null_word() -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 0], pa.int8()), pa.array(["a", None])
    )


def test_null_of_a_dictionary_becomes_a_null_index() -> None:
    array = with_null_word()
    found = FileShape(file_name="d", target=array.type).apply(array)
    assert found.type == array.type
    assert found.to_pylist() == ["a", None, None, "a"]
    assert found.dictionary.null_count == 0


def test_null_of_a_nested_dictionary_becomes_a_null_index() -> None:
    array = with_null_word()
    struct = pa.StructArray.from_arrays([array], names=["d"])
    leaf = FileShape(file_name="d", target=array.type)
    found = FileShape(file_name="s", target=struct.type, children=(leaf,)).apply(struct)
    assert found.field(0).dictionary.null_count == 0
    assert found.to_pylist() == struct.to_pylist()


def test_packed_struct_is_one_column() -> None:
    array = pa.array([{"a": 1, "b": 2}], pa.struct([("a", pa.int8()), ("b", pa.int8())]))
    target = pa.struct([("a", pa.int16()), ("b", pa.int16())])
    assert FileShape(file_name="p", target=target).apply(array).to_pylist() == [{"a": 1, "b": 2}]


def test_since_21_no_bytes_at_a_position_are_null() -> None:
    array = positions_with_nulls(pa.array(VALUES, POSITIONS), FileVersion.V2_1)
    assert array.to_pylist() == [VALUES[0], VALUES[1], None, None]


def test_in_20_files_positions_stay_as_they_are() -> None:
    array = pa.array(VALUES, POSITIONS)
    assert positions_with_nulls(array, FileVersion.V2_0).equals(array)


def test_slices_of_positions_keep_their_rows() -> None:
    array = positions_with_nulls(pa.array(VALUES, POSITIONS)[1:3], FileVersion.V2_1)
    assert array.to_pylist() == [VALUES[1], None]


def test_the_type_of_positions_stays() -> None:
    assert positions_with_nulls(pa.array(VALUES, POSITIONS), FileVersion.V2_1).type == POSITIONS
