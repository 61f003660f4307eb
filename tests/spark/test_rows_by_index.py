"""Row commands of Spark find the rows that they change through an index."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lancelake
from lancelake.spark import LanceTable
from lancelake.spark.jobs import merge as run
from lancelake.spark.jobs import row_maker
from lancelake.spark.jobs.rows_out import group_by_fragment
from lancelake.spark.tasks.read_plan import PlannedRead, ReadPartition
from lancelake.table.merge import match
from tests.support.searched_tables import add_segment

ROWS = 400
FRAGMENTS = 20
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
Reads = list[dict[int, int | None]]


def values(ids: list[int]) -> pa.Table:
    """Return rows with keys of several types; every fiftieth has nulls."""
    some = [None if n % 50 == 49 else n for n in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "small": pa.array(ids, pa.int16()),
            "text": [None if n is None else f"t{n}" for n in some],
            "money": pa.array([None if n is None else Decimal(n) / 4 for n in some]).cast(
                pa.decimal128(12, 2)
            ),
            "at": pa.array(
                [None if n is None else START + datetime.timedelta(hours=n) for n in some],
                pa.timestamp("us", "UTC"),
            ),
            "half": pa.array([0.0 if n == 0 else n / 2 for n in ids], pa.float64()),
            "v": pa.array(["old"] * len(ids)),
        }
    )


INDEXED = ("id", "small", "text", "money", "at", "half")


@pytest.fixture
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a table of twenty fragments, of which the last is not indexed."""
    place = str(tmp_path / "rows.lance")
    lancelake.write_dataset(
        values(list(range(ROWS))),
        place,
        max_rows_per_file=ROWS // FRAGMENTS,
        enable_stable_row_ids=getattr(request, "param", False),
    )
    for column in INDEXED:
        add_segment(place, column, "BTREE", fragments=set(range(FRAGMENTS - 1)))
    lancelake.dataset(place).delete("id = 5")
    return place


@pytest.fixture
def plain(path: str, tmp_path: Path) -> str:
    """Return a copy of the table without indices."""
    place = str(tmp_path / "plain.lance")
    shutil.copytree(path, place)
    for column in INDEXED:
        lancelake.dataset(place).drop_index(f"{column}_btree")
    return place


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the keys of small sources be looked up in small tables."""
    monkeypatch.setattr(run, "LEAST_ROWS", 0)
    monkeypatch.setattr(match, "_ROWS_PER_KEY", 10)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Return a list that gets the fragments of every read, with the number of rows of each."""
    scans: Reads = []
    partitions: Callable[[PlannedRead], list[ReadPartition]] = PlannedRead.partitions

    def recorded(read: PlannedRead) -> list[ReadPartition]:
        parts = partitions(read)
        if "_rowaddr" in read.request.schema.fieldNames():
            tasks = [task for part in parts for task in part.tasks]
            scans.append({t.fragment.id: t.rows and len(t.rows) for t in tasks})
        return parts

    monkeypatch.setattr(PlannedRead, "partitions", recorded)
    return scans


def merge(spark: SparkSession, path: str, source: DataFrame, condition: str) -> None:
    builder = LanceTable.forPath(spark, path).alias("t").merge(source.alias("s"), condition)
    builder.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsert(
        values={"id": "s.new", "v": "s.v"}
    ).execute()


def content(path: str) -> list[dict[str, Any]]:
    stored = lancelake.dataset(path).to_table(use_scalar_index=False)
    return sorted(stored.to_pylist(), key=lambda row: (row["id"], row["v"]))


@pytest.mark.parametrize("path", [False, True], ids=["addresses", "stable ids"], indirect=True)
def test_merge_reads_rows_with_keys_of_the_source(
    spark: SparkSession, path: str, plain: str, reads: Reads
) -> None:
    source = spark.createDataFrame([(3, 9), (5, 9), (45, 9), (390, 9), (777, 9)], "k long, n int")
    source.selectExpr("k", "k AS new", "'new' AS v").createOrReplaceTempView("few")
    for place in (path, plain):
        spark.sql(
            f"MERGE INTO lance.`{place}` t USING few s ON t.id = s.k "
            "WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.new, s.v)"
        )
    # The deleted row 5 is dropped by the task; the last fragment is not indexed.
    assert reads[0] == {0: 2, 2: 1, FRAGMENTS - 1: None}
    assert reads[1] == dict.fromkeys(range(FRAGMENTS))
    assert content(path) == content(plain)
    assert [row["id"] for row in content(path) if row["v"] == "new"] == [3, 5, 45, 390, 777]


KEYS = "(3L), (45L), (149L), (390L), (777L)"


@pytest.mark.filterwarnings("ignore:the merge into .* has no key filter")
@pytest.mark.parametrize(
    ("condition", "is_narrowed"),
    [
        ("t.small = s.k", True),
        ("t.text = concat('t', s.k)", True),
        ("t.money = cast(s.k / 4 AS decimal(12, 2))", True),
        ("t.at = timestamp '2024-01-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, s.k)", True),
        ("t.text = concat('t', s.k) AND t.id = s.k AND t.v = 'old'", True),
        ("t.text <=> concat('t', s.k)", True),
        ("t.text <=> if(s.k = 149, null, concat('t', s.k))", False),
        ("t.half = s.k / 2", False),
        ("t.id + 0 = s.k", False),
        ("t.id = s.k OR t.id = s.k + 1", False),
    ],
)
def test_merge_by_index_changes_the_rows_of_a_scan(
    spark: SparkSession, path: str, plain: str, reads: Reads, condition: str, is_narrowed: bool
) -> None:
    source = spark.sql(f"SELECT k, k AS new, 'new' AS v FROM VALUES {KEYS} AS rows(k)")
    for place in (path, plain):
        merge(spark, place, source, condition)
    assert (len(reads[0]) < FRAGMENTS) == is_narrowed
    assert content(path) == content(plain)
    assert "new" in {row["v"] for row in content(path)}


@pytest.mark.parametrize(("few", "are_distributed"), [(1 << 14, False), (0, True)])
def test_few_rows_that_an_index_finds_are_not_distributed_by_address(
    spark: SparkSession,
    path: str,
    plain: str,
    monkeypatch: pytest.MonkeyPatch,
    few: int,
    are_distributed: bool,
) -> None:
    source = spark.sql(f"SELECT k, k AS new, 'new' AS v FROM VALUES {KEYS} AS rows(k)")
    merge(spark, plain, source, "t.id = s.k")
    distributed: list[DataFrame] = []

    def watched(frame: DataFrame) -> DataFrame:
        distributed.append(frame)
        return group_by_fragment(frame)

    monkeypatch.setattr(row_maker, "group_by_fragment", watched)
    monkeypatch.setattr(run, "_FEW_ROWS", few)
    merge(spark, path, source, "t.id = s.k")
    assert bool(distributed) == are_distributed
    assert content(path) == content(plain)


def test_keys_are_computed_for_rows_that_the_condition_leaves(
    spark: SparkSession, path: str, reads: Reads
) -> None:
    source = spark.sql("SELECT * FROM VALUES ('3', 1L, 'new'), ('none', 2L, 'new') AS r(k, new, v)")
    merge = (
        LanceTable.forPath(spark, path)
        .alias("t")
        .merge(source.alias("s"), "s.new = 1 AND t.id = cast(s.k AS bigint)")
    )
    merge.whenMatchedUpdate(set={"v": "s.v"}).execute()
    assert reads[0] == {0: 1, FRAGMENTS - 1: None}
    assert [row["id"] for row in content(path) if row["v"] == "new"] == [3]


def test_keys_that_depend_on_the_time_are_matched_by_a_scan(
    spark: SparkSession, path: str, reads: Reads
) -> None:
    source = spark.sql("SELECT 3L AS k, 3L AS new, 'new' AS v")
    merge(spark, path, source, "t.id = s.k * if(now() > timestamp '2000-01-01', 1, 0)")
    assert set(reads[0]) == set(range(FRAGMENTS))
    assert [row["id"] for row in content(path) if row["v"] == "new"] == [3]


def test_many_keys_are_matched_by_a_scan(spark: SparkSession, path: str, reads: Reads) -> None:
    source = spark.range(ROWS // 10 + 1).selectExpr("id k", "id new", "'new' v")
    merge(spark, path, source, "t.id = s.k")
    assert set(reads[0]) == set(range(FRAGMENTS))


def test_keys_that_a_column_cannot_have_are_matched_by_a_scan(
    spark: SparkSession, path: str, plain: str
) -> None:
    source = spark.sql(
        "SELECT k, k AS new, 'new' AS v FROM VALUES (3L), (100000L), (null) AS rows(k)"
    ).where("k IS NOT NULL")
    for place in (path, plain):
        merge(spark, place, source, "t.small = s.k")
    assert content(path) == content(plain)


def test_rows_without_a_match_in_the_source_are_found_by_a_scan(
    spark: SparkSession, path: str, plain: str
) -> None:
    source = spark.createDataFrame([(3, "new"), (45, "new")], "k long, v string")
    for place in (path, plain):
        builder = LanceTable.forPath(spark, place).alias("t").merge(source.alias("s"), "t.id = s.k")
        builder.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedBySourceDelete("t.id > 100")
        builder.execute()
    assert content(path) == content(plain)


@pytest.mark.parametrize("condition", ["id IN (3, 45)", "text = 't45' OR small = 3S"])
def test_update_reads_rows_that_the_index_finds(
    spark: SparkSession, path: str, plain: str, reads: Reads, condition: str
) -> None:
    for place in (path, plain):
        spark.sql(f"UPDATE lance.`{place}` SET v = 'new' WHERE {condition}")
    assert reads[0] == {0: 1, 2: 1, FRAGMENTS - 1: None}
    assert content(path) == content(plain)


def test_delete_with_a_condition_of_spark_reads_rows_that_the_index_finds(
    spark: SparkSession, path: str, plain: str, reads: Reads
) -> None:
    for place in (path, plain):
        spark.sql(
            f"DELETE FROM lance.`{place}` WHERE id IN (3, 45) AND soundex(v) = soundex('old')"
        )
    assert reads[0] == {0: 1, 2: 1, FRAGMENTS - 1: None}
    assert content(path) == content(plain)
