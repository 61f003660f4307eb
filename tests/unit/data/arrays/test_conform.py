"""Tests of turning users' values into values as files keep them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.data.arrays.conform import Conformer
from lancelake.data.schema_check import ensure_fits
from lancelake.errors import SchemaMismatchError
from lancelake.format import jsonb
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import FileVersion
from tests.strategies.tables import schemas, tables
from tests.strategies.target import Target

NEWEST = Target(release="14.0.2", file_version="2.2")
PAIR = pa.struct([("x", pa.int32()), ("y", pa.string())])
REQUIRED = pa.struct([pa.field("x", pa.int32(), nullable=False)])


def _conformed(
    table: pa.Schema, batch: pa.RecordBatch, version: FileVersion = FileVersion.V2_1
) -> pa.RecordBatch:
    fields = ensure_fits(from_arrow(table), batch.schema, casts=True)
    result = Conformer(fields, version)(batch)
    result.validate(full=True)
    return result


def _column(
    table: pa.DataType, array: pa.Array, *, nullable: bool = True, version: str = "2.1"
) -> pa.Array:
    batch = pa.record_batch([array], names=["c"])
    schema = pa.schema([pa.field("c", table, nullable)])
    return _conformed(schema, batch, FileVersion(version)).column(0)


def _json(values: list[str | None]) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.json_(), pa.array(values, pa.string()))


@pytest.mark.parametrize(
    ("table", "array"),
    [
        (pa.string(), pa.array(["a", None], pa.string_view())),
        (pa.string(), pa.array(["a", None], pa.large_string())),
        (pa.string(), pa.array(["a", None, "a"]).dictionary_encode()),
        (pa.dictionary(pa.int8(), pa.string()), pa.array(["a", None, "a"])),
        (pa.dictionary(pa.int8(), pa.string()), pa.array(["a", None]).dictionary_encode()),
        (pa.int64(), pa.array([1, None], pa.int8())),
        (pa.int8(), pa.array([1, None], pa.int64())),
        (pa.list_(pa.int32()), pa.array([[1], None, []], pa.large_list(pa.int8()))),
        (pa.list_(pa.float32(), 2), pa.array([[1.0, 2.0], None], pa.list_(pa.float64()))),
        (PAIR, pa.nulls(3)),
        (pa.list_(PAIR), pa.array([None, []], pa.list_(pa.null()))),
        (pa.map_(pa.string(), pa.int32()), pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8()))),
    ],
    ids=str,
)
def test_values_take_the_type_of_the_table(table: pa.DataType, array: pa.Array) -> None:
    result = _column(table, array)
    assert result.type == table
    assert result.to_pylist() == array.to_pylist()


def test_a_value_that_does_not_fit_is_an_error_with_its_column() -> None:
    with pytest.raises(SchemaMismatchError, match="Can't cast values of column c to type int8"):
        _column(pa.int8(), pa.array([300]))


def test_members_are_brought_into_the_order_of_the_table() -> None:
    array = pa.array([{"y": "a", "x": 1}, None], pa.struct([("y", pa.string()), ("x", pa.int32())]))
    assert _column(PAIR, array).to_pylist() == [{"x": 1, "y": "a"}, None]


def test_nulls_in_a_required_column_are_refused_by_name() -> None:
    with pytest.raises(SchemaMismatchError, match="column c contains null values"):
        _column(pa.int32(), pa.array([1, None]), nullable=False)


def test_nulls_in_required_items_are_refused_by_path() -> None:
    table = pa.list_(pa.field("item", pa.int32(), nullable=False))
    with pytest.raises(SchemaMismatchError, match=r"column c\.item contains null values"):
        _column(table, pa.array([[1, None]], pa.list_(pa.int32())))


def test_nulls_outside_a_slice_do_not_count() -> None:
    table = pa.list_(pa.field("item", pa.int32(), nullable=False))
    array = pa.array([[None], [1]], pa.list_(pa.int32())).slice(1)
    assert _column(table, array).to_pylist() == [[1]]


def test_a_required_member_of_a_null_struct_holds_anything() -> None:
    array = pa.array([{"x": 1}, None], pa.struct([("x", pa.int32())]))
    result = _column(REQUIRED, array)
    assert result.to_pylist() == [{"x": 1}, None]
    assert result.field(0).null_count == 0


def test_a_null_among_the_words_of_a_dictionary_becomes_a_null() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None]))
    result = _column(pa.dictionary(pa.int8(), pa.string()), array)
    assert result.null_count == 1


def test_files_2_0_hold_no_null_structs() -> None:
    with pytest.raises(SchemaMismatchError, match=r'null struct.*"2\.1"'):
        _column(PAIR, pa.array([{"x": 1, "y": "a"}, None], PAIR), version="2.0")


def test_files_2_0_hold_no_null_structs_in_lists() -> None:
    with pytest.raises(SchemaMismatchError, match=r"c\.item has a null struct"):
        _column(pa.list_(PAIR), pa.array([[None]], pa.list_(PAIR)), version="2.0")


@pytest.mark.parametrize("wrap", [pa.list_, pa.large_list], ids=["list", "large list"])
def test_json_is_encoded_inside_lists(wrap: object) -> None:
    texts = _json(['{"a":1}', None])
    make = pa.ListArray if wrap is pa.list_ else pa.LargeListArray
    array = make.from_arrays([0, 2], texts)
    result = _column(wrap(pa.json_()), array)  # type: ignore[operator]  # one of the two above
    assert jsonb.decode_array(result.values).to_pylist() == ['{"a":1}', None]


def test_json_text_that_is_not_json_is_an_error_with_its_column() -> None:
    with pytest.raises(SchemaMismatchError, match="column c has a value that is not JSON"):
        _column(pa.json_(), _json(['{"a":']))


def test_only_visible_json_is_encoded() -> None:
    array = pa.ListArray.from_arrays([0, 1, 2], _json(["not json", "1"])).slice(1)
    assert _column(pa.list_(pa.json_()), array).values.null_count == 0


@pytest.mark.parametrize("dtype", [pa.list_(pa.int8()), pa.list_(PAIR), pa.list_(REQUIRED), PAIR])
def test_no_rows_stay_no_rows(dtype: pa.DataType) -> None:
    assert len(_column(dtype, pa.array([], dtype))) == 0


def test_plain_columns_are_not_copied() -> None:
    array = pa.array([1, None, 3])
    assert _column(pa.int64(), array).buffers()[1].address == array.buffers()[1].address


@given(st.data())
def test_any_slice_keeps_its_values(data: st.DataObject) -> None:
    schema = data.draw(schemas(NEWEST))
    (batch,) = data.draw(tables(schema, NEWEST)).to_batches() or [None]
    if batch is None:
        return
    start = data.draw(st.integers(0, batch.num_rows))
    part = batch.slice(start, data.draw(st.integers(0, batch.num_rows)))
    result = _conformed(schema, part, FileVersion.V2_2)
    for field in schema:
        if "json" not in str(field.type):
            assert _plain(result.column(field.name)) == _plain(part.column(field.name))


def _plain(array: pa.Array) -> str:
    """Print through Arrow, because Python cannot hold every timestamp."""
    return array.to_string(window=100)
