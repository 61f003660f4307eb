"""Values keep their meaning in the types that Spark expects."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.errors import InternalError, SchemaMismatchError
from lancelake.spark.tasks.columns import SparkConformer, conform

INNER = pa.struct([("a", pa.int32()), ("b", pa.string())])
ELEMENTS = pa.list_(pa.field("element", pa.int32()))
CASES = [
    (pa.array([1, None], pa.uint32()), pa.int64()),
    (pa.array(["x", None], pa.large_string()), pa.string()),
    (pa.array(["x", None]).dictionary_encode(), pa.string()),
    (pa.array([[1, 2], None, []], pa.list_(pa.int32())), ELEMENTS),
    (pa.array([[1, 2], None], pa.large_list(pa.int32())), ELEMENTS),
    (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), ELEMENTS),
    (pa.array([1, None], pa.timestamp("ms", "UTC")), pa.timestamp("us", "UTC")),
]


@pytest.mark.parametrize(("array", "target"), CASES, ids=lambda v: str(getattr(v, "type", v)))
@pytest.mark.parametrize("start", [0, 1])
def test_values_stay_the_same(array: pa.Array, target: pa.DataType, start: int) -> None:
    part = array.slice(start)
    found = conform(part, target)
    found.validate(full=True)
    assert found.type == target
    assert found.to_pylist() == part.to_pylist()


def test_members_that_are_not_wanted_are_left_out() -> None:
    array = pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}], INNER)
    found = conform(array.slice(1), pa.struct([("b", pa.string())]))
    assert found.to_pylist() == [None, {"b": "y"}]


def test_maps_keep_their_entries() -> None:
    array = pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32()))
    target = pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int64()))
    assert conform(array.slice(0, 2), target).to_pylist() == [[("k", 1)], None]


def test_rows_without_columns_are_still_counted() -> None:
    batch = pa.record_batch({"a": [1, 2, 3]})
    assert SparkConformer(pa.schema([]))(batch).num_rows == 3


def test_columns_and_struct_fields_that_a_version_lacks_are_null() -> None:
    inner = pa.struct([("a", pa.int64()), ("b", pa.string())])
    target = pa.schema([("n", pa.int64()), ("l", pa.list_(pa.field("element", inner)))])
    batch = pa.record_batch(
        {"l": pa.array([[{"a": 1}], None], pa.list_(pa.struct([("a", pa.int64())])))}
    )
    found = SparkConformer(target, fills=True)(batch)
    found.validate(full=True)
    assert found.to_pylist() == [{"n": None, "l": [{"a": 1, "b": None}]}, {"n": None, "l": None}]


def test_rows_of_a_version_that_lacks_every_column_are_counted() -> None:
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    found = SparkConformer(pa.schema([("n", pa.int64())]), fills=True)(batch)
    assert found.to_pydict() == {"n": [None, None]}


def test_a_field_that_was_not_read_is_no_null() -> None:
    with pytest.raises(InternalError, match="field n was not read"):
        SparkConformer(pa.schema([("n", pa.int64())]))(pa.record_batch({"a": [1]}))


@pytest.mark.parametrize("dtype", [pa.int64(), pa.int32()])
def test_a_null_is_never_passed_to_spark_as_a_value(dtype: pa.DataType) -> None:
    target = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    fields = [pa.field("n", dtype, nullable=False)]
    batch = pa.record_batch([pa.array([1, None], dtype)], schema=pa.schema(fields))
    with pytest.raises(SchemaMismatchError, match="column n has nulls"):
        SparkConformer(target)(batch)
