"""Batches from workers reach Spark whole, whatever stands above the scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import lancelake
from tests.spark.corpus.data import rows
from tests.support.spark_compare import bag

COUNT = 120
NESTED = ["id", "st", "ps", "xx", "m", "mm", "sm"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a table whose first fragments lack a column, and of which rows are deleted."""
    place = tmp_path_factory.mktemp("columnar") / "t.lance"
    every = rows(COUNT).select(NESTED)
    old = every.drop_columns(["sm", "m"]).slice(0, 50)
    table = lancelake.write_dataset(
        old, place, max_rows_per_file=20, data_storage_version="2.2", enable_stable_row_ids=True
    )
    table.add_columns(pa.schema([every.schema.field("m"), every.schema.field("sm")]))
    table = lancelake.write_dataset(every.slice(50), place, mode="append", max_rows_per_file=30)
    table.delete("id >= 20 AND id < 40 OR id % 10 = 3")
    return str(place)


@pytest.fixture
def frame(spark: SparkSession, path: str) -> DataFrame:
    """Return the table in batches of a few rows."""
    return spark.read.format("lance").option("batchRows", 4).load(path)


@pytest.fixture(scope="module")
def expected(spark: SparkSession, path: str) -> DataFrame:
    """Return the same rows without a scan below them."""
    table = lancelake.LanceDataset(path).to_table()
    whole = table.take(list(range(table.num_rows))).combine_chunks()
    schema = spark.read.format("lance").load(path).schema
    return spark.createDataFrame(whole, schema)


def same_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keep every batch before the first is handed on."""
    yield from list(batches)


Above = Callable[[DataFrame], DataFrame]
ABOVE: dict[str, Above] = {
    "rows": lambda x: x,
    "a function of batches": lambda x: x.mapInArrow(same_batches, x.schema),
    "a function of batches after a filter": lambda x: x.where("id % 2 = 0").mapInArrow(
        same_batches, x.schema
    ),
    "a cache": lambda x: x.cache(),
    "a shuffle": lambda x: x.repartition(3, "id"),
    "a sort": lambda x: x.sortWithinPartitions(f.desc("id")),
    "a union with itself": lambda x: x.unionAll(x),
    "a broadcast": lambda x: x.join(f.broadcast(x.select("id", f.col("m").alias("other"))), "id"),
    "nothing left": lambda x: x.where("id < 0 AND size(m) = 1"),
    "only what old files lack": lambda x: x.select("m", "sm"),
    "rows of old files alone": lambda x: x.where("id < 20"),
    "no column": lambda x: x.select(),
}


@pytest.mark.parametrize("above", ABOVE)
def test_nested_values_are_whole(frame: DataFrame, expected: DataFrame, above: str) -> None:
    act = ABOVE[above]
    assert bag(act(frame)) == bag(act(expected))


def test_a_limit_may_leave_batches_unread(frame: DataFrame) -> None:
    assert len(frame.where("id % 2 = 0").mapInArrow(same_batches, frame.schema).take(3)) == 3
    assert len(list(zip(range(5), frame.toLocalIterator(), strict=False))) == 5


def test_a_partition_without_rows_has_the_columns(spark: SparkSession, tmp_path: Path) -> None:
    schema = rows(1).schema
    lancelake.write_dataset(schema.empty_table(), tmp_path / "t.lance", data_storage_version="2.2")
    frame = spark.read.format("lance").load(str(tmp_path / "t.lance"))
    assert frame.drop("clock").collect() == []
    assert frame.select("mm").mapInArrow(same_batches, frame.select("mm").schema).count() == 0
