"""SQL over a folder of tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import SparkSession

import lancelake
from lancelake.errors import LanceTableError, RefNotFoundError, VersionNotFoundError
from lancelake.spark import error_of


@pytest.fixture(scope="module")
def path(spark: SparkSession, warehouse: Path) -> Iterator[str]:
    """Return the place of `lance.shop.orders`: two versions, a tag on the first, a branch."""
    place = warehouse / "shop" / "orders.lance"
    table = lancelake.write_dataset(pa.table({"id": [1, 2, 3]}), place)
    table.tags.create("first", 1)
    table.create_branch("trial", 1)
    lancelake.write_dataset(pa.table({"id": [4]}), place, mode="append")
    yield str(place)
    spark.sql("DROP NAMESPACE lance.shop CASCADE")


def values(spark: SparkSession, query: str) -> list[object]:
    """Return the first column of a query's rows."""
    return [row[0] for row in spark.sql(query).collect()]


def failure(spark: SparkSession, query: str) -> LanceTableError | None:
    """Run a query that fails and return the error of ours inside."""
    with pytest.raises(IllegalArgumentException) as caught:
        spark.sql(query).collect()
    return error_of(caught.value)


def test_names_are_listed(spark: SparkSession, path: str) -> None:
    assert ("shop",) in [tuple(r) for r in spark.sql("SHOW NAMESPACES IN lance").collect()]
    assert [r.tableName for r in spark.sql("SHOW TABLES IN lance.shop").collect()] == ["orders"]


@pytest.mark.parametrize(
    ("suffix", "count"),
    [
        ("", 4),
        (" VERSION AS OF 1", 3),
        (" VERSION AS OF 'first'", 3),
        (" TIMESTAMP AS OF '2100-01-01'", 4),
        (".tag_first", 3),
        (".branch_trial", 3),
    ],
)
def test_versions_are_chosen_by_sql(
    spark: SparkSession, path: str, suffix: str, count: int
) -> None:
    assert values(spark, f"SELECT count(*) FROM lance.shop.orders{suffix}") == [count]


def test_tables_are_reached_by_path(spark: SparkSession, path: str) -> None:
    assert values(spark, f"SELECT max(id) FROM lance.`{path}`") == [4]


@pytest.mark.parametrize(
    ("table", "column", "expected"),
    [
        ("history", "operation", ["WRITE", "WRITE"]),
        ("versions", "rows", [3, 4]),
        ("fragments", "rows", [3, 1]),
        ("files", "fragment_id", [0, 1]),
        ("refs", "name", ["first", "trial"]),
        ("indices", "name", []),
    ],
)
def test_facts_about_a_table_are_tables(
    spark: SparkSession, path: str, table: str, column: str, expected: list[object]
) -> None:
    assert values(spark, f"SELECT {column} FROM lance.shop.orders.{table}") == expected


@pytest.mark.parametrize(
    ("table", "expected"), [("history", 2), ("versions", 2), ("fragments", 2), ("indices", 0)]
)
def test_facts_about_a_table_can_be_counted(
    spark: SparkSession, path: str, table: str, expected: int
) -> None:
    assert spark.table(f"lance.shop.orders.{table}").count() == expected


def test_a_missing_table_is_named(spark: SparkSession, path: str) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM lance.shop.nothing")


def test_a_missing_version_is_our_error(spark: SparkSession, path: str) -> None:
    error = failure(spark, "SELECT * FROM lance.shop.orders VERSION AS OF 77")
    assert isinstance(error, VersionNotFoundError)


def test_a_missing_tag_is_our_error(spark: SparkSession, path: str) -> None:
    error = failure(spark, "SELECT * FROM lance.shop.orders VERSION AS OF 'nope'")
    assert isinstance(error, RefNotFoundError)


def test_a_time_before_the_table_is_our_error(spark: SparkSession, path: str) -> None:
    error = failure(spark, "SELECT * FROM lance.shop.orders TIMESTAMP AS OF '2001-01-01'")
    assert isinstance(error, VersionNotFoundError)


def test_tables_and_namespaces_come_and_go(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE lance.fresh COMMENT 'for a test'")
    spark.sql("CREATE TABLE lance.fresh.t (id bigint COMMENT 'key', v varchar(5), m map<int, int>)")
    assert spark.table("lance.fresh.t").collect() == []
    described = {r.col_name: r for r in spark.sql("DESCRIBE TABLE lance.fresh.t").collect()}
    assert described["id"].comment == "key"
    assert described["v"].data_type == "varchar(5)"
    with pytest.raises(AnalysisException, match="already exists"):
        spark.sql("CREATE TABLE lance.fresh.t (id bigint)")
    with pytest.raises(IllegalArgumentException, match="not empty"):
        spark.sql("DROP NAMESPACE lance.fresh")
    spark.sql("DROP TABLE lance.fresh.t")
    spark.sql("DROP TABLE IF EXISTS lance.fresh.t")
    spark.sql("DROP NAMESPACE lance.fresh")
    assert "fresh" not in values(spark, "SHOW NAMESPACES IN lance")


def test_metadata_columns_name_the_location_of_a_row(spark: SparkSession, path: str) -> None:
    query = "SELECT id, _fragid, _rowaddr, _rowid FROM lance.shop.orders WHERE id > 2 ORDER BY id"
    rows = [tuple(row) for row in spark.sql(query).collect()]
    assert rows == [(3, 0, 2, 2), (4, 1, 1 << 32, 1 << 32)]
