"""Lengths of CHAR and VARCHAR values in Arrow arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from lancelake.errors import SchemaMismatchError
from lancelake.spark.jobs.fitted_rows import arrow_within_bounds

SHORT, PADDED, TEXT = t.VarcharType(3), t.CharType(4), pa.string()
MEMBERS = t.StructType().add("a", SHORT).add("b", PADDED)
STORED = pa.struct([("a", TEXT), ("b", TEXT), ("n", pa.int64())])
CASES: list[tuple[t.DataType, pa.DataType, list[Any], list[Any], Any]] = [
    (SHORT, TEXT, ["abc ", None], ["abc", None], "abcd"),
    (PADDED, TEXT, ["a", None], ["a   ", None], "abcde"),
    (t.ArrayType(SHORT), pa.list_(TEXT), [["abc "], None, []], [["abc"], None, []], ["abcd"]),
    (
        MEMBERS,
        STORED,
        [{"a": "x", "b": "y", "n": 1}, None],
        [{"a": "x", "b": "y   ", "n": 1}, None],
        {"a": "abcd"},
    ),
    (
        t.MapType(SHORT, PADDED),
        pa.map_(TEXT, TEXT),
        [[("k", "v")], None],
        [[("k", "v   ")], None],
        [("abcd", "v")],
    ),
    (
        t.ArrayType(MEMBERS),
        pa.list_(STORED),
        [[{"a": "x", "b": "y", "n": 1}, None]],
        [[{"a": "x", "b": "y   ", "n": 1}, None]],
        [{"a": "abcd"}],
    ),
]


@pytest.mark.parametrize(("dtype", "stored", "given", "kept", "long"), CASES)
def test_values_fit_or_are_refused(
    dtype: t.DataType, stored: pa.DataType, given: list[Any], kept: list[Any], long: object
) -> None:
    assert arrow_within_bounds(pa.array(given, stored), dtype, "c").to_pylist() == kept
    # A slice refers to values of its own only.
    sliced = pa.array([long, *given], stored).slice(1)
    assert arrow_within_bounds(sliced, dtype, "c").to_pylist() == kept
    with pytest.raises(SchemaMismatchError, match="more than"):
        arrow_within_bounds(pa.array([*given, long], stored), dtype, "c")
