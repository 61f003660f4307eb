"""Exceptions of Spark that carry an error of ours are one sentence, not a stack trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lancelake.spark import error_of

MOST_LINES = 3


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> Iterator[str]:
    """Return the name of a table with a nested column."""
    spark.sql("CREATE NAMESPACE lance.short")
    spark.sql("CREATE TABLE lance.short.t (id INT, arr ARRAY<STRUCT<a: INT>>)")
    spark.sql("INSERT INTO lance.short.t SELECT 1, array(named_struct('a', 2))")
    yield "lance.short.t"
    spark.sql("DROP NAMESPACE lance.short CASCADE")


def failure(action: Callable[[], object]) -> Exception:
    """Return what an action raises."""
    with pytest.raises(Exception) as caught:  # the kind is not the point
        action()
    return caught.value


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE {t} ADD COLUMN x INT NOT NULL",
        "ALTER TABLE {t} REPLACE COLUMNS (other STRING)",
    ],
    ids=["not null", "replace columns"],
)
def test_a_refused_statement_is_explained_in_few_lines(
    spark: SparkSession, table: str, statement: str
) -> None:
    error = failure(lambda: spark.sql(statement.format(t=table)))
    assert len(str(error).splitlines()) <= MOST_LINES
    assert error_of(error) is not None


def test_a_missing_file_is_explained_in_few_lines(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    spark.sql(f"CREATE TABLE {table}_lost AS SELECT * FROM {table}")
    for file in (warehouse / "short" / "t_lost.lance" / "data").iterdir():
        file.unlink()
    error = failure(lambda: spark.table(f"{table}_lost").collect())
    assert len(str(error).splitlines()) <= MOST_LINES
    assert "data/" in str(error)
    assert error_of(error) is not None


def test_another_exception_is_unchanged(spark: SparkSession) -> None:
    error = failure(lambda: spark.sql("SELECT raise_error('mine')").collect())
    assert "mine" in str(error)
    assert error_of(error) is None


def test_a_procedure_takes_names_of_the_current_namespace(spark: SparkSession, table: str) -> None:
    new = spark.newSession()
    new.sql("USE lance.short")
    (made,) = new.sql("CALL lance.system.tag('t', 'found')").collect()
    assert made.version == spark.sql(f"SELECT max(version) FROM {table}.versions").first()[0]


def test_a_procedure_suggests_a_close_table(spark: SparkSession, table: str) -> None:
    error = failure(lambda: spark.sql("CALL lance.system.tag('short.tt', 'x')").collect())
    assert "Did you mean t" in str(error)
    assert table


def test_a_procedure_suggests_a_close_procedure(spark: SparkSession) -> None:
    error = failure(lambda: spark.sql("CALL lance.system.optimise('short.t')"))
    assert "Did you mean optimize" in str(error)
