"""Types of Spark and of tables, there and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from lancelake.errors import UnsupportedError
from lancelake.format.arrow_schema import from_arrow
from lancelake.spark.values.spark_types import (
    arrow_schema,
    declared,
    nullable_schema,
    shown_schema,
    spark_field,
    spark_schema,
    spark_type,
)

KEPT = [
    t.BooleanType(),
    t.ByteType(),
    t.ShortType(),
    t.IntegerType(),
    t.LongType(),
    t.FloatType(),
    t.DoubleType(),
    t.StringType(),
    t.BinaryType(),
    t.DateType(),
    t.TimestampType(),
    t.TimestampNTZType(),
    t.DecimalType(38, 18),
    t.DayTimeIntervalType(),
    t.DayTimeIntervalType(t.DayTimeIntervalType.DAY, t.DayTimeIntervalType.HOUR),
    t.TimeType(),
    t.TimeType(0),
    t.StructType([t.StructField("a", t.TimeType(3))]),
    t.NullType(),
    t.ArrayType(t.IntegerType(), containsNull=False),
    t.MapType(t.StringType(), t.ArrayType(t.LongType()), valueContainsNull=False),
    t.StructType([t.StructField("a", t.IntegerType(), nullable=False)]),
    t.ArrayType(t.StructType([t.StructField("a", t.DecimalType(5, 2))])),
]


@pytest.mark.parametrize("dtype", KEPT, ids=lambda d: d.simpleString())
def test_types_of_spark_come_back(dtype: t.DataType) -> None:
    schema = t.StructType([t.StructField("c", dtype, nullable=True)])
    assert spark_schema(from_arrow(arrow_schema(schema))) == schema


@pytest.mark.parametrize(
    "dtype",
    [
        t.VariantType(),
        t.YearMonthIntervalType(),
        t.CalendarIntervalType(),
        t.StringType("UTF8_LCASE"),
    ],
    ids=lambda d: type(d).__name__,
)
def test_types_that_tables_lack_are_refused_by_column(dtype: t.DataType) -> None:
    inner = t.StructType([t.StructField("v", dtype)])
    with pytest.raises(UnsupportedError, match=r"column s\.v has type"):
        arrow_schema(t.StructType([t.StructField("s", inner)]))


@pytest.mark.parametrize(
    ("arrow", "spark"),
    [
        (pa.uint8(), t.ShortType()),
        (pa.uint64(), t.DecimalType(20, 0)),
        (pa.float16(), t.FloatType()),
        (pa.large_string(), t.StringType()),
        (pa.date64(), t.DateType()),
        (pa.timestamp("ns"), t.TimestampNTZType()),
        (pa.timestamp("s", "Europe/Berlin"), t.TimestampType()),
        (pa.list_(pa.float32(), 4), t.ArrayType(t.FloatType())),
        (pa.binary(16), t.BinaryType()),
        (pa.dictionary(pa.int8(), pa.string()), t.StringType()),
    ],
    ids=str,
)
def test_types_that_spark_lacks_are_shown_as_the_next_larger(
    arrow: pa.DataType, spark: t.DataType
) -> None:
    assert spark_type(arrow) == spark


def test_a_type_without_any_match_is_refused_by_column() -> None:
    with pytest.raises(UnsupportedError, match=r"column a\.b has type decimal256"):
        spark_type(pa.decimal256(50, 2), ("a", "b"))


def test_lengths_of_strings_and_comments_come_back() -> None:
    fields = [
        t.StructField("v", t.VarcharType(5), metadata={"comment": "short"}),
        t.StructField("c", t.CharType(3)),
    ]
    schema = t.StructType(fields)
    stored = from_arrow(arrow_schema(schema))
    assert declared(spark_schema(stored), stored) == schema


def test_a_column_that_spark_cannot_show_is_left_out_with_a_warning() -> None:
    schema = from_arrow(pa.schema([("id", pa.int64()), ("big", pa.decimal256(50, 2))]))
    with pytest.warns(UserWarning, match=r"column big has type decimal256\(50, 2\), which Spark"):
        assert shown_schema(schema).fieldNames() == ["id"]


def test_a_narrowed_type_is_forgotten_when_the_column_has_another() -> None:
    (field,) = arrow_schema(t.StructType([t.StructField("c", t.TimeType(0))]))
    assert spark_field(field.with_type(pa.int32())).dataType == t.IntegerType()


def test_columns_of_data_and_their_nested_values_may_be_null() -> None:
    member = t.StructField("a", t.IntegerType(), False, {"comment": "kept"})
    nested = t.MapType(t.StringType(), t.StructType([member]), False)
    declared = t.StructType([t.StructField("c", t.ArrayType(nested, False), False)])
    (found,) = nullable_schema(declared).fields
    assert found.nullable
    assert found.dataType.containsNull
    assert found.dataType.elementType.valueContainsNull
    assert found.dataType.elementType.valueType["a"] == t.StructField(
        "a", t.IntegerType(), True, {"comment": "kept"}
    )
