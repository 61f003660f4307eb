"""Tests of matching data with a table's schema."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.data.schema_check import ensure_fits, match_schema
from lancelake.errors import SchemaMismatchError
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.schema import Schema

TEXT = pa.string()
PAIR = pa.struct([("x", pa.int32()), ("y", pa.string())])


def _schema(dtype: pa.DataType, *, nullable: bool = True) -> Schema:
    return from_arrow(pa.schema([pa.field("c", dtype, nullable)]))


def _data(dtype: pa.DataType, **field: object) -> pa.Schema:
    return pa.schema([pa.field("c", dtype, **field)])


THREE = from_arrow(pa.schema([("a", pa.int32()), ("b", TEXT), pa.field("k", pa.int64(), False)]))


def test_columns_come_out_in_the_order_of_the_table() -> None:
    data = pa.schema([("k", pa.int64()), ("b", TEXT), ("a", pa.int32())])
    assert ensure_fits(THREE, data) == THREE


def test_missing_nullable_columns_are_left_out() -> None:
    assert ensure_fits(THREE, pa.schema([("k", pa.int64())])).names == ("k",)


def test_a_missing_required_column_is_named() -> None:
    with pytest.raises(SchemaMismatchError, match=r"column k of type int64 is missing"):
        ensure_fits(THREE, pa.schema([("a", pa.int32())]))


def test_an_extra_column_is_named() -> None:
    data = pa.schema([("k", pa.int64()), ("z", TEXT)])
    with pytest.raises(SchemaMismatchError, match="does not have: z"):
        ensure_fits(THREE, data)


def test_extra_columns_are_returned_when_asked_for() -> None:
    data = pa.schema([("z", TEXT), ("k", pa.int64())])
    assert match_schema(THREE, data).extra == (pa.field("z", TEXT),)


def test_names_are_distinguished_by_case() -> None:
    with pytest.raises(SchemaMismatchError, match="does not have: A"):
        ensure_fits(THREE, pa.schema([("A", pa.int32()), ("k", pa.int64())]))


def test_a_name_that_comes_twice_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="two columns k"):
        ensure_fits(THREE, pa.schema([("k", pa.int64()), ("k", pa.int64())]))


def test_the_error_is_also_what_pylance_raises() -> None:
    with pytest.raises(OSError, match="int64 in the table and int32 in the data"):
        ensure_fits(_schema(pa.int64()), _data(pa.int32()))


@pytest.mark.parametrize(
    ("table", "data"),
    [
        (pa.string(), pa.large_string()),
        (pa.large_string(), pa.string()),
        (pa.int64(), pa.int32()),
        (pa.float32(), pa.float64()),
        (pa.int64(), pa.null()),
        (pa.string(), pa.dictionary(pa.int32(), pa.string())),
        (pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.string())),
        (pa.list_(pa.int32()), pa.large_list(pa.int32())),
        (pa.list_(pa.int32()), pa.list_(pa.int32(), 2)),
        (pa.timestamp("us"), pa.timestamp("ns")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.decimal128(10, 2), pa.decimal128(8, 2)),
        (pa.json_(), pa.string()),
        (pa.string(), pa.json_()),
        (pa.list_(pa.int32()), pa.list_(pa.field("element", pa.int32()))),
    ],
    ids=str,
)
def test_types_that_official_releases_refuse_are_refused(
    table: pa.DataType, data: pa.DataType
) -> None:
    with pytest.raises(SchemaMismatchError, match=r"column c"):
        ensure_fits(_schema(table), _data(data))


@pytest.mark.parametrize(
    ("table", "data"),
    [
        (pa.string(), pa.string_view()),
        (pa.binary(), pa.binary_view()),
        (pa.json_(), pa.json_(pa.large_string())),
        (pa.list_(pa.int32()), pa.list_(pa.field("item", pa.int32(), nullable=False))),
        (pa.list_(pa.field("item", pa.int32(), nullable=False)), pa.list_(pa.int32())),
        (pa.list_(pa.int32(), 2), pa.list_(pa.field("q", pa.int32(), nullable=False), 2)),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int8(), keys_sorted=True)),
        (pa.dictionary(pa.int8(), TEXT), pa.dictionary(pa.int8(), TEXT, ordered=True)),
    ],
    ids=str,
)
def test_types_that_hold_the_same_values_fit(table: pa.DataType, data: pa.DataType) -> None:
    assert ensure_fits(_schema(table), _data(data)) == _schema(table)


@pytest.mark.parametrize(
    ("table", "data"),
    [
        (pa.string(), pa.large_string()),
        (pa.int64(), pa.int32()),
        (pa.int32(), pa.int64()),
        (pa.string(), pa.dictionary(pa.int32(), pa.string())),
        (pa.list_(pa.int32()), pa.large_list(pa.field("element", pa.int64()))),
        (pa.list_(pa.float32(), 2), pa.list_(pa.float64())),
        (pa.json_(), pa.string()),
        (PAIR, pa.null()),
    ],
    ids=str,
)
def test_casts_let_more_types_fit(table: pa.DataType, data: pa.DataType) -> None:
    assert ensure_fits(_schema(table), _data(data), casts=True) == _schema(table)


@pytest.mark.parametrize(
    ("table", "data"),
    [(PAIR, pa.int32()), (pa.int32(), PAIR), (pa.string(), pa.list_(PAIR)), (TEXT, pa.json_())],
    ids=str,
)
def test_no_cast_leads_from_one_shape_to_another(table: pa.DataType, data: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match=r"column c"):
        ensure_fits(_schema(table), _data(data), casts=True)


def test_a_null_column_does_not_fit_a_required_one() -> None:
    with pytest.raises(SchemaMismatchError, match="column c"):
        ensure_fits(_schema(pa.int8(), nullable=False), _data(pa.null()), casts=True)


def test_members_are_matched_by_name() -> None:
    data = _data(pa.struct([("y", TEXT), ("x", pa.int32())]))
    assert ensure_fits(_schema(PAIR), data) == _schema(PAIR)


def test_missing_members_are_left_out_in_lists_too() -> None:
    matched = ensure_fits(_schema(pa.list_(PAIR)), _data(pa.list_(pa.struct([("y", TEXT)]))))
    assert [field.name for field in matched.walk()] == ["c", "item", "y"]


@pytest.mark.parametrize(
    "members",
    [
        [("x", pa.int32()), ("z", TEXT)],
        [("x", pa.int64())],
        [],
        [("x", pa.int32()), ("x", pa.int32())],
    ],
    ids=["unknown", "other type", "none", "twice"],
)
def test_members_that_do_not_fit_are_refused(members: list[tuple[str, pa.DataType]]) -> None:
    with pytest.raises(SchemaMismatchError, match=r"column c|columns c"):
        ensure_fits(_schema(PAIR), _data(pa.struct(members)))


def test_the_path_of_a_member_is_named() -> None:
    inner = pa.list_(pa.struct([("x", pa.int64())]))
    with pytest.raises(SchemaMismatchError, match=r"c\.item\.x has type int32 in the table"):
        ensure_fits(_schema(pa.list_(PAIR)), _data(inner))


def test_a_packed_struct_needs_all_its_members() -> None:
    packed = pa.field("c", PAIR, metadata={"lance-encoding:packed": "true"})
    with pytest.raises(SchemaMismatchError, match="has missing fields"):
        ensure_fits(from_arrow(pa.schema([packed])), _data(pa.struct([("x", pa.int32())])))


def test_metadata_does_not_count() -> None:
    data = _data(pa.int32(), metadata={"k": "v"}).with_metadata({"z": "y"})
    assert ensure_fits(_schema(pa.int32()), data) == _schema(pa.int32())


def test_a_type_outside_the_format_is_named() -> None:
    with pytest.raises(SchemaMismatchError, match="column c has type month_day_nano_interval"):
        ensure_fits(_schema(pa.int32()), _data(pa.month_day_nano_interval()))
