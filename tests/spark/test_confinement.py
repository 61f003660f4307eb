"""`confineTo` restricts a table to the allowed locations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lancelake.pylance as lance
from lancelake.spark import LanceTable, register


@pytest.fixture
def source(tmp_path: Path) -> Path:
    made = lance.write_dataset(pa.table({"a": [1, 2]}), str(tmp_path / "source.lance"))
    made.shallow_clone(str(tmp_path / "clone.lance"), 1)
    return tmp_path / "source.lance"


@pytest.fixture
def clone(source: Path) -> Path:
    return source.with_name("clone.lance")


@pytest.fixture
def confined_catalog(spark: SparkSession, clone: Path) -> Iterator[str]:
    """A catalog whose tables reach only the catalog's own folder; the clone's source is outside."""
    (clone.parent / "root").mkdir()
    clone.rename(clone.parent / "root" / "clone.lance")
    conf = spark.sparkContext._conf
    conf.set("spark.sql.catalog.shut.confineTo", "")
    register(spark, "shut", str(clone.parent / "root"))
    yield "shut"
    conf.set("spark.sql.catalog.shut.confineTo", str(clone.parent))


def test_read_reaches_only_the_roots_that_are_given(
    spark: SparkSession, clone: Path, source: Path
) -> None:
    read = spark.read.format("lance")
    assert read.load(str(clone)).count() == 2
    roots = json.dumps([str(source)])
    assert len(read.option("confineTo", roots).load(str(clone)).collect()) == 2
    with pytest.raises(Exception, match="outside of confine_to"):
        spark.read.format("lance").option("confineTo", "").load(str(clone)).collect()


def test_row_work_is_confined(spark: SparkSession, clone: Path) -> None:
    table = LanceTable.forPath(spark, str(clone), confineTo="")
    with pytest.raises(Exception, match="outside of confine_to"):
        table.delete("a = 1")


def test_catalog_is_confined(spark: SparkSession, confined_catalog: str) -> None:
    with pytest.raises(Exception, match="outside of confine_to"):
        spark.sql(f"SELECT a FROM {confined_catalog}.clone").collect()


def test_option_for_a_table_by_name_is_refused(spark: SparkSession, warehouse: Path) -> None:
    spark.sql("CREATE TABLE lance.open_one (a INT)")
    with pytest.raises(Exception, match="confineTo is not supported"):
        spark.read.option("confineTo", "").table("lance.open_one").collect()
    spark.sql("DROP TABLE lance.open_one")
    assert not (warehouse / "open_one.lance").exists()
