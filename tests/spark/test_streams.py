"""Streams out of tables, and into them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import lancelake
from lancelake.errors import UnsupportedError
from lancelake.spark import LanceTable, error_of, merge_batches, write
from tests.support.spark_version import needs_spark


def numbers(spark: SparkSession, start: int, stop: int) -> DataFrame:
    """Return rows with an id and a text."""
    return spark.range(start, stop).selectExpr("id", "cast(id as string) text")


def copy(spark: SparkSession, source: Path, target: Path, **options: str) -> None:
    """Run a stream from a table to another until it has read what there is."""
    stream = spark.readStream.format("lance").options(**options).load(str(source))
    checkpoint = str(target.with_suffix(".checkpoint"))
    query = (
        stream.writeStream.format("lance")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(str(target))
    )
    query.awaitTermination()


def ids(place: Path) -> list[int]:
    """Return the ids of a table's rows, sorted."""
    return sorted(lancelake.LanceDataset(str(place)).to_table(columns=["id"]).column(0).to_pylist())


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Path:
    """Return a table of ten rows."""
    place = tmp_path / "source.lance"
    write(numbers(spark, 0, 10), str(place))
    return place


def test_a_stream_reads_all_rows_and_then_new_ones(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.lance"
    copy(spark, source, target)
    assert ids(target) == list(range(10))
    write(numbers(spark, 10, 12), str(source), "append")
    copy(spark, source, target)
    assert ids(target) == list(range(12))


def test_a_batch_without_rows_makes_no_version(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.lance"
    copy(spark, source, target)
    before = lancelake.LanceDataset(str(target)).version
    lancelake.LanceDataset(str(source)).update_config({"color": "blue"})
    copy(spark, source, target)
    assert lancelake.LanceDataset(str(target)).version == before


def test_a_batch_that_is_run_again_is_committed_once(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.lance"
    copy(spark, source, target)
    # Without the record of its commit Spark runs the batch again, as after a crash.
    for record in (tmp_path / "target.checkpoint" / "commits").iterdir():
        record.unlink()
    copy(spark, source, target)
    assert ids(target) == list(range(10))


def test_changed_rows_are_refused_by_a_stream_of_new_ones(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.lance"
    copy(spark, source, target)
    LanceTable.forPath(spark, str(source)).delete("id = 3")
    with pytest.raises(Exception, match="readChangeFeed=true") as caught:
        copy(spark, source, target)
    assert isinstance(error_of(caught.value), UnsupportedError)


def test_changed_rows_are_passed_over_when_asked(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.lance"
    copy(spark, source, target)
    LanceTable.forPath(spark, str(source)).delete("id = 3")
    write(numbers(spark, 10, 11), str(source), "append")
    copy(spark, source, target, skipChangeCommits="true")
    assert ids(target) == list(range(11))


def test_a_skipped_commit_is_skipped_with_the_rows_that_it_inserts(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.lance"
    copy(spark, source, target)
    table = LanceTable.forPath(spark, str(source))
    upserts = numbers(spark, 9, 12)
    merge = table.merge(upserts, "target.id = source.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    write(numbers(spark, 20, 21), str(source), "append")
    copy(spark, source, target, skipChangeCommits="true")
    assert ids(target) == [*range(10), 20]


def test_a_stream_cannot_start_after_the_newest_version(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(PySparkException) as caught:
        copy(spark, source, tmp_path / "target.lance", startingVersion="9")
    assert "the newest version is 1" in str(error_of(caught.value))


def test_a_stream_creates_its_table_at_once(
    spark: SparkSession, source: Path, warehouse: Path, tmp_path: Path
) -> None:
    stream = spark.readStream.format("lance").load(str(source)).where("id < 0")
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "cp"))
    query = writer.toTable("lance.early")
    try:
        dataset = lancelake.LanceDataset(warehouse / "early.lance")
        assert (dataset.version, dataset.schema.names) == (1, ["id", "text"])
        assert dataset.has_stable_row_ids
    finally:
        query.stop()
        spark.sql("DROP TABLE lance.early")


def test_a_change_feed_has_what_happened_to_each_row(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    table = LanceTable.forPath(spark, str(source))
    table.update("id = 1", {"text": "'x'"})
    table.delete("id = 2")
    target = tmp_path / "changes.lance"
    copy(spark, source, target, readChangeFeed="true", startingVersion="2")
    rows = lancelake.LanceDataset(str(target)).to_table().to_pylist()
    assert sorted((r["id"], r["text"], r["_change_type"], r["_commit_version"]) for r in rows) == [
        (1, "1", "update_preimage", 2),
        (1, "x", "update_postimage", 2),
        (2, "2", "delete", 3),
    ]


@needs_spark("4.2", "limits of streams")
def test_a_stream_takes_a_few_versions_at_a_time(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    for start in range(10, 14):
        write(numbers(spark, start, start + 1).coalesce(1), str(source), "append")
    target = tmp_path / "target.lance"
    copy(spark, source, target, startingVersion="2", maxVersionsPerTrigger="2")
    assert ids(target) == [10, 11, 12, 13]
    assert lancelake.LanceDataset(str(target)).version == 2


def test_batches_are_merged_by_key(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.lance"
    write(numbers(spark, 5, 15).withColumn("text", f.lit("old")), str(target))
    stream = spark.readStream.format("lance").load(str(source))
    query = (
        stream.writeStream.format("lance")
        .option("mergeKeys", "id")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(target))
    )
    query.awaitTermination()
    rows = lancelake.LanceDataset(str(target)).to_table().to_pylist()
    assert {row["id"]: row["text"] for row in rows} == {
        **dict.fromkeys(range(10, 15), "old"),
        **{i: str(i) for i in range(10)},
    }
    assert len(rows) == 15


def test_keys_that_repeat_in_the_first_batch_become_one_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, target = tmp_path / "source.lance", tmp_path / "target.lance"
    twice = numbers(spark, 0, 5).unionAll(numbers(spark, 0, 5).withColumn("text", f.lit("last")))
    write(twice.coalesce(1), str(source))
    query = (
        spark.readStream.format("lance")
        .load(str(source))
        .writeStream.format("lance")
        .option("mergeKeys", "id")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(target))
    )
    query.awaitTermination()
    rows = lancelake.LanceDataset(str(target)).to_table().to_pylist()
    assert sorted((row["id"], row["text"]) for row in rows) == [(i, "last") for i in range(5)]


def test_counts_of_a_stream_are_merged_in_update_mode(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = str(tmp_path / "target.lance")

    def run() -> None:
        stream = spark.readStream.format("lance").load(str(source))
        counts = stream.groupBy((f.col("id") % 2).alias("odd")).count()
        query = (
            counts.writeStream.outputMode("update")
            .foreachBatch(merge_batches(target, ["odd"]))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run()
    write(numbers(spark, 10, 13), str(source), "append")
    run()
    rows = lancelake.LanceDataset(target).to_table().to_pylist()
    assert {row["odd"]: row["count"] for row in rows} == {0: 7, 1: 6}


def test_the_first_batch_in_update_mode_is_known_when_it_is_run_again(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = str(tmp_path / "target.lance")
    merge_batch = merge_batches(target, ["id"], txn_app_id="app")
    for _ in range(2):
        merge_batch(spark.read.format("lance").load(str(source)), 0)
    assert lancelake.LanceDataset(target).version == 1


def test_a_stream_ends_when_a_column_of_its_source_is_renamed(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.lance"
    copy(spark, source, target)
    LanceTable.forPath(spark, str(source)).renameColumn("text", "words")
    spark.sql(f"INSERT INTO lance.`{source}` VALUES (10, 'ten')")
    with pytest.raises(PySparkException) as caught:
        copy(spark, source, target)
    assert "column text was renamed to words" in str(error_of(caught.value))
    assert ids(target) == list(range(10))


def test_a_stream_ends_when_its_source_was_created_again(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.lance"
    copy(spark, source, target)
    shutil.rmtree(source)
    write(numbers(spark, 20, 30), str(source))
    write(numbers(spark, 30, 40), str(source), "append")
    with pytest.raises(PySparkException) as caught:
        copy(spark, source, target)
    assert "it was recreated" in str(error_of(caught.value))


def test_a_column_that_older_versions_lack_is_null_in_a_stream(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    # The column is NOT NULL: every row has a value by now.
    lancelake.LanceDataset(str(source)).add_columns({"n": "7", "t": "'x'"})
    target = tmp_path / "target.lance"
    copy(spark, source, target, startingVersion="1", skipChangeCommits="true")
    rows = lancelake.LanceDataset(str(target)).to_table(columns=["n", "t"]).to_pylist()
    assert rows == [{"n": None, "t": None}] * 10


def test_a_batch_of_small_appends_becomes_few_files(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "source.lance", tmp_path / "target.lance"
    rows = lancelake.LanceDataset
    numbers(spark, 0, 1).write.format("lance").save(str(source))
    lancelake.write_dataset(
        rows(str(source)).to_table().take([0] * 60), str(source), mode="append", max_rows_per_file=1
    )
    copy(spark, source, target)
    assert rows(str(target)).count_rows() == 61
    assert len(rows(str(target)).get_fragments()) <= 8


def test_batches_of_a_stream_are_named_in_the_history(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.lance"
    copy(spark, source, target)
    done = LanceTable.forPath(spark, str(target)).history(1).first()
    assert (done.operation, done.metrics["rows_inserted"]) == ("STREAMING UPDATE", 10)
    assert done.engine == f"Spark {spark.version}"
