"""Values are unchanged under a structurally equal type, also in slices."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from lancelake.data.arrays.batches import retype, struct_of
from tests.strategies.arrow_types import fields
from tests.strategies.arrow_values import array_of, values
from tests.strategies.target import Target
from tests.support.compare import array_difference

TARGET = Target(release="14.0.2", file_version="2.2")


def tagged(field: pa.Field) -> pa.Field:
    """Return a field that differs in metadata and item names at every level."""
    return pa.field(field.name, other(field.type), field.nullable, {"level": field.name})


def other(dtype: pa.DataType) -> pa.DataType:
    if isinstance(dtype, pa.BaseExtensionType):
        return dtype
    if pa.types.is_struct(dtype):
        return pa.struct([tagged(member) for member in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(tagged(dtype.key_field), tagged(dtype.item_field))
    if pa.types.is_fixed_size_list(dtype):
        return pa.list_(tagged(dtype.value_field).with_name("other"), dtype.list_size)
    if pa.types.is_large_list(dtype):
        return pa.large_list(tagged(dtype.value_field).with_name("other"))
    if pa.types.is_list(dtype):
        return pa.list_(tagged(dtype.value_field).with_name("other"))
    return dtype


@given(st.data())
def test_values_stay_in_any_slice(data: DataObject) -> None:
    field = data.draw(fields(TARGET, "c"))
    items = data.draw(st.lists(values(field, TARGET), max_size=6))
    array = array_of(field.type, items, TARGET)
    start = data.draw(st.integers(0, len(array)))
    part = array.slice(start, data.draw(st.integers(0, len(array) - start)))
    target = other(field.type)
    found = retype(part, target)
    found.validate(full=True)
    assert found.type.equals(target, check_metadata=True)
    assert array_difference(found, part, "c") is None


def test_same_type_is_the_same_array() -> None:
    array = pa.array([[1], None], pa.list_(pa.int8()))
    assert retype(array, pa.list_(pa.int8())) is array


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array([1, None], pa.int32()), pa.int64()),
        (pa.array(["a", None]), pa.large_string()),
        (pa.array([[1], None], pa.list_(pa.int32())), pa.list_(pa.int64())),
        (pa.array([{"x": 1}, None], pa.struct([("x", pa.int8())])), pa.struct([("x", pa.int16())])),
    ],
)
def test_leaves_are_cast_where_they_differ(array: pa.Array, target: pa.DataType) -> None:
    found = retype(array, target)
    assert (found.type, found.to_pylist()) == (target, array.to_pylist())


def test_extension_type_is_put_on_and_taken_off() -> None:
    storage = pa.array([b"0" * 16, None], pa.binary(16))
    shown = retype(storage, pa.uuid())
    assert shown.type == pa.uuid()
    assert retype(shown, pa.binary(16)) == storage


@given(st.lists(st.booleans(), max_size=20), st.integers(0, 20))
def test_struct_without_members_keeps_its_nulls_in_slices(present: list[bool], start: int) -> None:
    like = pa.array(
        [{"x": 1} if there else None for there in present], pa.struct([("x", pa.int8())])
    )
    part = like.slice(start)
    found = struct_of([], [], part)
    assert found.is_valid().to_pylist() == present[start:]
    assert len(found) == len(part)


def test_struct_is_null_where_its_like_is() -> None:
    like = pa.array([{"x": 1}, None, {"x": 3}], pa.struct([("x", pa.int8())]))
    found = struct_of([pa.array([7, 8, 9])], [pa.field("y", pa.int64())], like)
    assert found.to_pylist() == [{"y": 7}, None, {"y": 9}]
