"""Tables with a LOCATION of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lancelake
from lancelake.errors import SchemaMismatchError
from lancelake.spark import error_of


@pytest.fixture(autouse=True)
def namespace(spark: SparkSession) -> Iterator[None]:
    """Have a namespace that goes with all its tables."""
    spark.sql("CREATE NAMESPACE lance.x")
    yield
    spark.sql("DROP NAMESPACE lance.x CASCADE")


def names(spark: SparkSession) -> list[str]:
    """Return the tables of the namespace."""
    return [row.tableName for row in spark.sql("SHOW TABLES IN lance.x").collect()]


def test_an_external_table_is_stored_at_its_location(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "a.lance"
    spark.sql(f"CREATE TABLE lance.x.t (id INT) LOCATION '{place}'")
    spark.sql("INSERT INTO lance.x.t VALUES (1)")
    assert lancelake.LanceDataset(place).count_rows() == 1
    assert names(spark) == ["t"]
    assert f"LOCATION '{place}'" in spark.sql("SHOW CREATE TABLE lance.x.t").first()[0]


def test_dropping_an_external_table_keeps_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "a.lance"
    spark.sql(f"CREATE TABLE lance.x.t LOCATION '{place}' AS SELECT 5 AS id")
    spark.sql("ALTER TABLE lance.x.t RENAME TO x.u")
    assert names(spark) == ["u"]
    spark.sql("DROP TABLE lance.x.u")
    assert names(spark) == []
    assert lancelake.LanceDataset(place).to_table().to_pylist() == [{"id": 5}]


def test_an_existing_table_gets_a_name(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "a.lance"
    spark.range(3).write.format("lance").save(str(place))
    spark.sql(f"CREATE EXTERNAL TABLE lance.x.t LOCATION '{place}'")
    assert spark.table("lance.x.t").count() == 3
    with pytest.raises(PySparkException) as caught:
        spark.sql(f"CREATE TABLE lance.x.u (id STRING) LOCATION '{place}'")
    assert isinstance(error_of(caught.value), SchemaMismatchError)
    assert names(spark) == ["t"]
