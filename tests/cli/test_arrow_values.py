"""Display of Arrow values of every type."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from lancelake.cli.rows import is_right_aligned, to_cell
from lancelake.describe.cells import to_json
from tests.strategies.tables import schemas, tables
from tests.strategies.target import Target

TARGET = Target(release="14.0.2", file_version="2.2")
STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (None, pa.int64(), None),
        (2**64 - 1, pa.uint64(), 2**64 - 1),
        (True, pa.bool_(), True),
        (0.5, pa.float32(), 0.5),
        (float("inf"), pa.float64(), "Infinity"),
        (float("-inf"), pa.float64(), "-Infinity"),
        (b"\xff", pa.binary(), "/w=="),
        (b"\xff\x00", pa.binary(2), "/wA="),
        (Decimal("1.50"), pa.decimal128(5, 2), "1.50"),
        (18262, pa.date32(), "2020-01-01"),
        (1, pa.time64("ns"), "00:00:00.000000001"),
        (1, pa.timestamp("ns"), "1970-01-01T00:00:00.000000001"),
        (0, pa.timestamp("s", "UTC"), "1970-01-01T00:00:00Z"),
        (0, pa.timestamp("s", "+05:30"), "1970-01-01T05:30:00+05:30"),
        (-1500, pa.duration("ms"), "PT-1.5S"),
        ([1, None], pa.list_(pa.int8()), [1, None]),
        ([1.0, 2.0], pa.list_(pa.float32(), 2), [1.0, 2.0]),
        ({"a": 1, "b": None}, STRUCT, {"a": 1, "b": None}),
        ([("k", 1)], pa.map_(pa.string(), pa.int8()), [{"key": "k", "value": 1}]),
    ],
    ids=str,
)
def test_json_of(value: Any, dtype: pa.DataType, expected: Any) -> None:
    assert to_json(_scalar(value, dtype)) == expected


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (None, pa.int64(), "null"),
        (1234567, pa.int64(), "1234567"),
        (123456.78, pa.float64(), "123456.78"),
        (0.1, pa.float32(), "0.1"),
        (7.0, pa.float32(), "7.0"),
        (0.1, pa.float16(), "0.09998"),
        (True, pa.bool_(), "true"),
        ("two\nlines", pa.string(), "two\\nlines"),
        ("\x1b[31mred", pa.string(), "\\u001b[31mred"),
        (b"\x89PNG", pa.binary(), "89504e47 4 B"),
        (b"\x00" * 5000, pa.binary(), "0000000000000000… 4.9 KiB"),
        ([0.5] * 768, pa.list_(pa.float32(), 768), "[0.5, 0.5, 0.5, …] 768d"),
        ([0.123456789, 2], pa.list_(pa.float32(), 2), "[0.12346, 2] 2d"),
        ([1, 2], pa.list_(pa.int8(), 2), "[1, 2] 2d"),
        (["a", "b", "c", "d", "e"], pa.list_(pa.string()), '["a", "b", "c", "d", … 5]'),
        ({"a": 1, "b": "x"}, STRUCT, '{a: 1, b: "x"}'),
        ([("k", 1)], pa.map_(pa.string(), pa.int8()), '{"k": 1}'),
        (0, pa.timestamp("s"), "1970-01-01T00:00:00"),
    ],
    ids=str,
)
def test_cell_of(value: Any, dtype: pa.DataType, expected: str) -> None:
    assert to_cell(_scalar(value, dtype)).plain == expected


def test_long_text_is_cut() -> None:
    assert len(to_cell(pa.scalar("x" * 10_000))) == 200


def test_dictionary_values_are_looked_through() -> None:
    scalar = pa.array(["a", None]).dictionary_encode()
    assert [to_json(v) for v in scalar] == ["a", None]


def test_extension_values_are_looked_through() -> None:
    assert to_json(pa.array(['{"a": 1}'], pa.json_())[0]) == '{"a": 1}'


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(pa.int8(), True), (pa.float16(), True), (pa.decimal128(5), True), (pa.string(), False)],
    ids=str,
)
def test_numbers_go_to_the_right(dtype: pa.DataType, expected: bool) -> None:
    assert is_right_aligned(dtype) is expected


@given(schemas(TARGET).flatmap(lambda schema: tables(schema, TARGET)))
def test_every_value_has_a_json_form_and_fits_on_a_line(table: pa.Table) -> None:
    for column in table.columns:
        for value in column:
            json.dumps(to_json(value), allow_nan=False)
            assert "\n" not in to_cell(value).plain


def _scalar(value: Any, dtype: pa.DataType) -> pa.Scalar:
    if pa.types.is_temporal(dtype) and value is not None:
        width = pa.int32() if dtype.bit_width == 32 else pa.int64()
        return pa.array([value], width).view(dtype)[0]
    return pa.scalar(value, dtype)
