"""Pushdown to scans, read from the physical plan, and what planning reads on the driver."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, functions

import lancelake
from lancelake.data.codec import readers
from lancelake.spark.reading import scan
from tests.support.spark_rows import rows

MANY_DOUBLES = ", ".join(f"double({n}.5)" for n in range(30))
MANY_DAYS = ", ".join(f"DATE'2024-02-{n:02}'" for n in range(1, 29))
PUSHED = [
    "i = 7",
    "i IN (1, 7)",
    "NOT (i = 7)",
    "l > 5 OR s LIKE 'a%'",
    "d < 1.5",
    "d = double('NaN')",
    "d IN (0.0, 1.5)",
    f"d IN ({MANY_DOUBLES})",
    f"day IN ({MANY_DAYS})",
    "i <=> 7",
    "s LIKE '%b%'",
    "s LIKE '%c'",
    "n > 0.5",
    "day = DATE'2024-02-29'",
    "t < TIMESTAMP'2024-01-01 00:00:00'",
    "w < TIMESTAMP_NTZ'2024-01-01 00:00:00'",
    "b = X'FF00'",
    "ok",
    "st.x > 3",
    "st.z IS NULL",
    "l = id",
    "_rowid = 7",
]
KEPT = ["upper(s) = 'ABC'", "i + 1 = 8", "isnan(d)", "size(xs) = 1"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a table of twenty small fragments."""
    place = str(tmp_path_factory.mktemp("plans") / "rows.lance")
    lancelake.write_dataset(rows(400), place, max_rows_per_file=20, data_storage_version="2.2")
    return place


@pytest.fixture(scope="module")
def frame(spark: SparkSession, path: str) -> DataFrame:
    """Return the table's rows."""
    return spark.read.format("lance").load(path)


def plan(frame: DataFrame) -> str:
    """Return the physical plan as text."""
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.mark.parametrize("condition", PUSHED)
def test_filter_is_left_to_the_scan(frame: DataFrame, condition: str) -> None:
    planned = plan(frame.where(condition).select("id"))
    assert "filters [" in planned
    assert "Filter (" not in planned


@pytest.mark.parametrize("condition", KEPT)
def test_filter_that_may_mean_something_else_stays_in_spark(
    frame: DataFrame, condition: str
) -> None:
    assert "Filter " in plan(frame.where(condition).select("id"))


def test_only_the_columns_asked_for_are_read(frame: DataFrame) -> None:
    assert "columns [i, s]" in plan(frame.select("i", "s"))


def test_only_the_members_asked_for_are_read(frame: DataFrame) -> None:
    assert "columns [st:struct<z:struct<q:int>>]" in plan(frame.select("st.z.q"))


def test_aggregates_are_computed_below_spark(frame: DataFrame) -> None:
    planned = plan(
        frame.groupBy("s").agg(
            functions.sum("i"), functions.avg("n"), functions.count("*"), functions.max("d")
        )
    )
    assert "by [s]" in planned
    assert all(f in planned for f in ("sum(i)", "sum(n)", "count(n)", "count_all(*)", "max(d)"))


def test_aggregates_over_distinct_values_stay_in_spark(frame: DataFrame) -> None:
    assert "partial aggregates" not in plan(frame.agg(functions.count_distinct("i")))


def test_rows_are_counted_from_metadata(frame: DataFrame) -> None:
    planned = plan(frame.groupBy().count())
    assert "LocalTableScan" in planned
    assert "BatchScan" not in planned


def test_limit_reaches_the_scan(frame: DataFrame) -> None:
    limited = frame.limit(10)
    assert "limit 10" in plan(limited)
    assert limited.rdd.getNumPartitions() == 1


def test_first_rows_reach_the_scan(frame: DataFrame) -> None:
    planned = plan(frame.orderBy(functions.desc("id")).limit(3).select("id"))
    assert "first 3 by [id desc]" in planned


def test_twenty_small_fragments_make_a_partition_per_core(frame: DataFrame) -> None:
    assert frame.select("id").rdd.getNumPartitions() == 2


def test_large_fragments_are_divided(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.range(300_000).toArrow()
    lancelake.write_dataset(table, tmp_path / "large.lance")
    frame = spark.read.format("lance").load(str(tmp_path / "large.lance"))
    assert frame.rdd.getNumPartitions() == 2
    assert frame.agg(functions.sum("id")).collect()[0][0] == 300_000 * 299_999 // 2


def test_statistics_have_the_bytes_of_the_columns_read(frame: DataFrame) -> None:
    stats = frame.select("id")._jdf.queryExecution().optimizedPlan().stats()
    assert int(stats.sizeInBytes()) == 400 * 8


def test_values_of_a_small_join_side_filter_the_scan(
    spark: SparkSession, frame: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "LEAST_PRUNED_BYTES", 0)
    keys = spark.createDataFrame([(3, "a"), (5, "a"), (7, "b")], "key long, g string")
    few = functions.broadcast(keys.where("g = 'a'"))
    joined = frame.join(few, frame.id == keys.key).select("id", "s")
    assert sorted(row.id for row in joined.collect()) == [3, 5]
    assert "id IN (3, 5)" in plan(joined)


def test_one_version_is_read_whatever_is_committed_meanwhile(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = lancelake.write_dataset(rows(10), tmp_path / "t.lance", data_storage_version="2.2")
    before = spark.read.format("lance").load(str(tmp_path / "t.lance"))
    table.delete("id < 5")
    after = spark.read.format("lance").load(str(tmp_path / "t.lance"))
    assert (before.count(), before.where("id >= 0").count()) == (10, 10)
    assert after.count() == 5


def test_planning_opens_no_data_file(frame: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a data file was opened on the driver")

    monkeypatch.setattr(readers, "file_reader", refuse, raising=True)
    plan(frame.where("i = 7 AND st.x > 3").select("id"))
    plan(frame.groupBy("s").agg(functions.sum("i")))
    assert frame.where("i = 7").select("id").rdd.getNumPartitions() == 2
    assert frame.count() == 400


def test_secrets_are_not_in_the_plan(spark: SparkSession, path: str) -> None:
    frame = spark.read.format("lance").option("aws_secret_access_key", "hush").load(path)
    shown = frame._jdf.queryExecution().toString() + plan(frame.where("i = 7"))
    assert "hush" not in shown


@pytest.mark.parametrize(
    ("condition", "fragments", "rows"),
    [
        ("_fragid = 3", 1, 20),
        ("_fragid IN (3, 5, 99)", 2, 40),
        ("_fragid < 2", 3, 40),
        ("_rowaddr >= 81604378624", 1, 20),
        (f"_rowaddr = {(4 << 32) + 7}", 1, 1),
        ("_fragid = 99", 0, 0),
        ("_fragid = 3 AND id % 2 = 0", 1, 10),
        ("_fragid = 3 OR id = 0", 20, 21),
    ],
)
def test_conditions_on_places_leave_fragments_out(
    frame: DataFrame, condition: str, fragments: int, rows: int
) -> None:
    answer = frame.where(condition).select("id", "_fragid", "_rowaddr")
    assert len(answer.collect()) == rows
    assert frame.where(condition).count() == rows
    scan = answer._jdf.queryExecution().executedPlan().collectLeaves().head()
    metrics = {name: scan.metrics().apply(name).value() for name in ("numFragments",)}
    assert metrics == {"numFragments": fragments}
    assert scan.metrics().apply("numFragmentsSkipped").value() == 20 - fragments
