"""Decide which aggregates and top-N orders can be pushed down."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.expr.condition import Column
from lancelake.scan.reduce.aggregate import Function, Kind, PartialAggregation
from lancelake.scan.reduce.sums import can_sum, sum_type
from lancelake.scan.reduce.top_rows import SortKey, TopRows, can_sort
from lancelake.spark.jvm.expressions import JavaExpressions
from lancelake.spark.reading import metadata_columns
from lancelake.spark.reading.read_plan import Aggregation, column_name
from lancelake.spark.types import spark_type

_MAX_TOP = 10_000
_KINDS = {"CountStar": Kind.COUNT_ALL, "Count": Kind.COUNT, "Min": Kind.MIN, "Max": Kind.MAX}
_KINDS["Sum"] = Kind.SUM


def aggregation_of(
    aggregation: Any, expressions: JavaExpressions
) -> tuple[Aggregation, t.StructType] | None:
    """Return the aggregation and the schema of its results; None if it would not be exact."""
    keys = [expressions.column(key) for key in aggregation.groupByExpressions()]
    functions = [_function(f, expressions) for f in aggregation.aggregateExpressions()]
    found_keys = [k for k in keys if k is not None and _can_group(k.dtype)]
    found = [f for f in functions if f is not None]
    if len(found_keys) < len(keys) or len(found) < len(functions):
        return None
    used = [*found_keys, *(column for _, column in found if column is not None)]
    if any(column.path[0] in metadata_columns.NAMES for column in used):
        return None
    key_names = tuple(f"key_{i}" for i in range(len(keys)))
    fields = [
        t.StructField(name, spark_type(key.dtype), nullable=True)
        for name, key in zip(key_names, found_keys, strict=True)
    ]
    named = [
        Function(kind=kind, column=None if c is None else column_name(c.path), name=f"value_{i}")
        for i, (kind, c) in enumerate(found)
    ]
    fields += [
        t.StructField(function.name, _result_type(kind, c), nullable=True)
        for function, (kind, c) in zip(named, found, strict=True)
    ]
    inputs = dict.fromkeys((c.path, c.dtype) for c in used)
    partial = PartialAggregation(
        keys=tuple(column_name(key.path) for key in found_keys),
        key_names=key_names,
        functions=tuple(named),
        inputs=pa.schema([(column_name(path), dtype) for path, dtype in inputs]),
    )
    paths = tuple(path for path, _ in inputs)
    return Aggregation(paths=paths, partial=partial), t.StructType(fields)


def averages_longs(aggregation: Any, expressions: JavaExpressions) -> bool:
    """Whether an average of 64-bit integers is requested.

    Spark computes it from a floating-point sum. A pushed average is computed from a 64-bit integer
    sum, which may overflow.
    """
    found = [f for f in aggregation.aggregateExpressions() if f.getClass().getSimpleName() == "Avg"]
    columns = [expressions.column(function.column()) for function in found]
    return any(column is not None and pa.types.is_int64(column.dtype) for column in columns)


def top_of(orders: Any, count: int, expressions: JavaExpressions) -> TopRows | None:
    """Return the top rows by these orders; None if Arrow and Spark sort differently."""
    keys: list[SortKey] = []
    for order in orders:
        column = expressions.column(order.expression())
        if column is None or len(column.path) > 1 or not can_sort(column.dtype):
            return None
        if column.path[0] in metadata_columns.NAMES:
            return None
        ascending = order.direction().toString() == "ASC"
        first = order.nullOrdering().toString() == "NULLS FIRST"
        keys.append(SortKey(column=column.path[0], ascending=ascending, nulls_first=first))
    return TopRows(keys=tuple(keys), count=count) if count <= _MAX_TOP else None


def _function(function: Any, expressions: JavaExpressions) -> tuple[Kind, Column | None] | None:
    kind = _KINDS.get(str(function.getClass().getSimpleName()))
    if kind is None:
        return None
    if kind is Kind.COUNT_ALL:
        return kind, None
    if kind in (Kind.COUNT, Kind.SUM) and function.isDistinct():
        return None
    column = expressions.column(function.column())
    if column is None or not _can_aggregate(kind, column.dtype):
        return None
    return kind, column


def _can_aggregate(kind: Kind, dtype: pa.DataType) -> bool:
    if kind is Kind.COUNT:
        return True
    if kind is Kind.SUM:
        return can_sum(dtype)
    is_float = dtype in (pa.float32(), pa.float64())
    return bool(is_float or pa.types.is_boolean(dtype) or _is_exact(dtype))


def _can_group(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(dtype) or _is_exact(dtype))


def _is_exact(dtype: pa.DataType) -> bool:
    """Whether values compare in Arrow as they do in Spark."""
    if pa.types.is_timestamp(dtype):
        return bool(dtype.unit == "us")
    number = pa.types.is_signed_integer(dtype) or pa.types.is_decimal128(dtype)
    text = dtype in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return bool(number or text or pa.types.is_date32(dtype))


def _result_type(kind: Kind, column: Column | None) -> t.DataType:
    if kind in (Kind.COUNT, Kind.COUNT_ALL) or column is None:
        return t.LongType()
    return spark_type(sum_type(column.dtype) if kind is Kind.SUM else column.dtype)
