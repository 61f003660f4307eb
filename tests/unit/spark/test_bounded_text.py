"""Declared lengths of text at every depth."""

from __future__ import annotations

import pytest
from pyspark.sql import types as t

from lancelake.format.arrow_schema import from_arrow
from lancelake.spark.values.spark_types import arrow_schema, declared, has_bounds, spark_schema

SHORT, PADDED, TEXT = t.VarcharType(3), t.CharType(4), t.StringType()


@pytest.mark.parametrize(
    "dtype",
    [
        SHORT,
        PADDED,
        t.StructType().add("a", SHORT).add("b", TEXT),
        t.ArrayType(SHORT),
        t.ArrayType(t.StructType().add("a", t.ArrayType(PADDED))),
        t.MapType(SHORT, PADDED),
        t.MapType(TEXT, t.StructType().add("a", SHORT)),
    ],
    ids=lambda dtype: dtype.simpleString(),
)
def test_declared_types_come_back(dtype: t.DataType) -> None:
    schema = t.StructType().add("c", dtype)
    stored = from_arrow(arrow_schema(schema))
    assert not has_bounds(spark_schema(stored))
    assert declared(spark_schema(stored), stored) == schema
    assert has_bounds(dtype)


def test_columns_without_lengths_are_the_same_objects() -> None:
    stored = from_arrow(arrow_schema(t.StructType().add("c", t.ArrayType(TEXT)).add("d", TEXT)))
    shown = spark_schema(stored)
    found = declared(shown, stored)
    assert all(a is b for a, b in zip(found.fields, shown.fields, strict=True))
