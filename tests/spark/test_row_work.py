"""Rows reach functions on executors in batches of bounded size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from lancelake.spark.jvm.python_tasks import messages_of
from lancelake.spark.tasks.on_executors import message_batch

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Tell rows and bytes of each batch."""
    values = [(batch.num_rows, batch.nbytes) for batch in batches]
    yield message_batch(json.dumps(values).encode())


def batches_of(frame: DataFrame) -> list[list[list[int]]]:
    """Return rows and bytes of each batch of each partition."""
    return [json.loads(message) for message in messages_of(frame, sizes)]


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[SparkSession]:
    """Return the session; its settings are put back."""
    before = {key: spark.conf.get(key) for key in (BYTES, ROWS)}
    yield spark
    for key, value in before.items():
        spark.conf.set(key, value or "")


def test_wide_rows_are_sent_in_batches_of_the_bytes_that_are_set(settings: SparkSession) -> None:
    settings.conf.set(BYTES, str(1 << 20))
    wide = settings.range(0, 64, 1, 2).select("id", f.repeat(f.lit("x"), 200_000).alias("text"))
    for partition in batches_of(wide):
        assert sum(rows for rows, _ in partition) == 32
        assert max(size for _, size in partition) < (1 << 20) + 300_000


def test_narrow_rows_are_sent_in_batches_of_the_rows_that_are_set(settings: SparkSession) -> None:
    settings.conf.set(ROWS, "100")
    (partition,) = batches_of(settings.range(0, 250, 1, 1).toDF("id"))
    assert [rows for rows, _ in partition] == [100, 100, 50]


def test_a_partition_without_rows_answers_too(spark: SparkSession) -> None:
    assert batches_of(spark.range(0, 1, 1, 3).toDF("id")).count([]) == 2


def test_a_frame_is_computed_again_each_time(spark: SparkSession) -> None:
    runs = spark.sparkContext.accumulator(0)

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        runs.add(1)
        yield from batches

    frame = spark.range(0, 9, 1, 1).mapInArrow(counted, "id long").repartition(2, "id")
    batches_of(frame)
    batches_of(frame)
    assert runs.value == 2


def test_what_a_frame_observes_is_reported_after_a_write(
    spark: SparkSession, tmp_table: str
) -> None:
    seen = Observation()
    frame = spark.range(0, 12).observe(seen, f.count(f.lit(1)).alias("rows"))
    frame.write.format("lance").mode("append").save(tmp_table)
    assert seen.get == {"rows": 12}
