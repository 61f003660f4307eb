"""Rows that a table accepts where no session of Spark can decide."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import types as t

import lancelake
from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.errors import SchemaMismatchError
from lancelake.spark.jobs.fitted_rows import (
    PlainRows,
    Rule,
    ensure_distinct,
    ensure_storable,
    matched_names,
)
from lancelake.spark.values.spark_types import arrow_schema
from lancelake.storage.location import Location

INT, LONG, TEXT, DOUBLE = t.IntegerType(), t.LongType(), t.StringType(), t.DoubleType()
DATE, TIME = t.DateType(), t.TimestampType()


@pytest.mark.parametrize(
    ("data", "table", "rules"),
    [
        (INT, LONG, "NUMBERS ANSI STRICT"),
        (LONG, INT, "NUMBERS ANSI"),
        (DOUBLE, t.DecimalType(10, 2), "NUMBERS ANSI"),
        (t.DecimalType(5, 2), t.DecimalType(7, 3), "NUMBERS ANSI STRICT"),
        (t.NullType(), DATE, "NUMBERS ANSI STRICT"),
        (TEXT, t.VarcharType(3), "NUMBERS ANSI STRICT"),
        (INT, TEXT, "ANSI STRICT"),
        (DATE, TIME, "ANSI STRICT"),
        (TIME, DATE, "ANSI"),
        (TEXT, INT, ""),
        (t.BooleanType(), LONG, ""),
        (INT, DATE, ""),
        (INT, t.BooleanType(), ""),
        (t.ArrayType(DOUBLE), t.ArrayType(t.FloatType()), "NUMBERS ANSI"),
        (t.ArrayType(TEXT), t.ArrayType(INT), ""),
        (t.MapType(TEXT, INT), t.MapType(TEXT, LONG), "NUMBERS ANSI STRICT"),
        (t.StructType().add("a", TEXT), t.StructType().add("A", INT), ""),
        (t.StructType().add("a", INT), t.StructType().add("A", INT), "NUMBERS ANSI STRICT"),
        (INT, t.ArrayType(INT), ""),
    ],
)
def test_values_are_stored_by_rules(data: t.DataType, table: t.DataType, rules: str) -> None:
    found = []
    for rule in Rule:
        try:
            ensure_storable(t.StructField("c", data), t.StructField("c", table), rule)
            found.append(rule.name)
        except SchemaMismatchError as error:
            assert "column c" in str(error)
    assert " ".join(found) == rules


@pytest.mark.parametrize(
    ("data", "table", "case_sensitive", "expected"),
    [
        (["ID", "New"], ["id"], False, ("id", "New")),
        (["ID"], ["id"], True, ("ID",)),
        (["ID"], ["id", "ID"], False, ("ID",)),
    ],
)
def test_names_are_matched(
    data: list[str], table: list[str], case_sensitive: bool, expected: tuple[str, ...]
) -> None:
    assert matched_names(data, table, case_sensitive=case_sensitive) == expected


@pytest.mark.parametrize(
    ("data", "table", "is_fine"),
    [
        (["a", "b"], ["a"], True),
        (["a", "A"], [], False),
        (["A"], ["a"], False),
        (["a", "A"], ["a", "A"], True),
    ],
)
def test_names_that_differ_only_in_case_are_found(
    data: list[str], table: list[str], is_fine: bool
) -> None:
    if is_fine:
        ensure_distinct(data, table)
        return
    with pytest.raises(SchemaMismatchError, match="differ only in case"):
        ensure_distinct(data, table)


@pytest.fixture
def base(tmp_path: Path) -> Snapshot:
    """Return a table with texts of bounded length."""
    schema = t.StructType().add("v", t.VarcharType(3)).add("c", t.CharType(4)).add("n", INT)
    place = tmp_path / "t.lance"
    lancelake.write_dataset(arrow_schema(schema).empty_table(), place)
    return open_snapshot(Location.parse(str(place)), Latest())


def test_batches_get_the_tables_names_and_lengths(base: Snapshot) -> None:
    data = t.StructType().add("C", TEXT).add("V", TEXT)
    rows = PlainRows.into(base, data)
    batch = pa.record_batch({"C": ["ab", None], "V": ["abc  ", "ä"]})
    (found,) = rows(iter([batch]))
    assert found.to_pydict() == {"c": ["ab  ", None], "v": ["abc", "ä"]}


def test_texts_that_are_too_long_are_refused(base: Snapshot) -> None:
    rows = PlainRows.into(base, t.StructType().add("v", TEXT))
    with pytest.raises(SchemaMismatchError, match="more than 3 characters"):
        list(rows(iter([pa.record_batch({"v": ["abcd"]})])))


def test_values_of_other_types_are_refused(base: Snapshot) -> None:
    with pytest.raises(SchemaMismatchError, match="does not accept values of type string"):
        PlainRows.into(base, t.StructType().add("n", TEXT))
