"""Table maintenance from Spark: metadata, compaction, cleanup, checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lancelake
from lancelake.errors import InvalidRequestError
from lancelake.spark import LanceTable, error_of
from tests.support.full_disk import no_room_below

NAME = "lance.keep.t"


@pytest.fixture
def table(spark: SparkSession) -> Iterator[LanceTable]:
    """Return a table of four small fragments of ten rows."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.keep")
    spark.sql(f"CREATE TABLE {NAME} (id bigint, day int) TBLPROPERTIES ('team' = 'x')")
    for start in range(0, 40, 10):
        rows = spark.range(start, start + 10, 1, 1).selectExpr("id", f"{start} day")
        rows.writeTo(NAME).append()
    yield LanceTable.forName(spark, NAME)
    spark.sql(f"DROP TABLE {NAME}")


def opened(warehouse: Path) -> lancelake.LanceDataset:
    """Return the table without Spark, checked."""
    dataset = lancelake.LanceDataset(warehouse / "keep" / "t.lance")
    dataset.validate()
    return dataset


def failure(action: Callable[[], object]) -> Exception | None:
    """Return the error of ours inside what an action raises."""
    with pytest.raises(PySparkException) as caught:
        action()
    return error_of(caught.value)


def test_history_is_reported_newest_first(table: LanceTable) -> None:
    assert [row.version for row in table.history().collect()] == [5, 4, 3, 2, 1]
    assert [row.operation for row in table.history(1).collect()] == ["WRITE"]


def test_detail_is_one_row(table: LanceTable) -> None:
    (row,) = table.detail().collect()
    assert (row.format, row.version, row.numRows, row.numFragments) == ("lance", 5, 40, 4)
    assert row.properties["team"] == "x"
    assert row.stableRowIds
    assert row.dataStorageVersion == "2.1"


def test_tags_and_branches_come_and_go(table: LanceTable) -> None:
    table.createTag("first", 2)
    table.createBranch("trial")
    assert [tuple(row) for row in table.tags().collect()] == [("first", 2, None)]
    assert [tuple(row) for row in table.branches().collect()] == [("trial", 5, None)]
    table.deleteTag("first")
    table.deleteBranch("trial")
    assert table.tags().collect() == table.branches().collect() == []


def test_small_fragments_are_merged(table: LanceTable, warehouse: Path) -> None:
    (done,) = table.optimize().executeCompaction().collect()
    assert (done.fragments_removed, done.fragments_added) == (4, 1)
    assert done.version == table.version()
    assert opened(warehouse).count_rows() == 40


def test_only_fragments_with_matching_rows_are_rewritten(
    table: LanceTable, warehouse: Path
) -> None:
    (done,) = table.optimize().where("day IN (10, 20)").executeCompaction().collect()
    assert (done.fragments_removed, done.fragments_added) == (2, 1)
    assert sorted(f.count_rows() for f in opened(warehouse).get_fragments()) == [10, 10, 20]


def test_rows_are_sorted(spark: SparkSession, table: LanceTable, warehouse: Path) -> None:
    table.optimize().executeSortBy("id DESC")
    assert opened(warehouse).to_table()["id"].to_pylist() == list(range(39, -1, -1))


def test_rows_are_ordered_by_several_columns(table: LanceTable, warehouse: Path) -> None:
    (done,) = table.optimize().executeZOrderBy("id", "day").collect()
    assert done.fragments_removed == 4
    assert opened(warehouse).count_rows() == 40


def test_old_versions_are_removed(table: LanceTable, warehouse: Path) -> None:
    table.createTag("kept", 2)
    (planned,) = table.vacuum(0, dryRun=True).collect()
    assert (planned.versions_removed, planned.is_dry_run) == (3, True)
    assert len(opened(warehouse).versions()) == 5
    assert table.vacuum(0).collect()[0].versions_removed == 3
    assert [row["version"] for row in opened(warehouse).versions()] == [2, 5]


@pytest.mark.parametrize("nested", [False, True])
def test_a_vacuum_makes_room_on_a_full_disk(
    table: LanceTable, warehouse: Path, nested: bool
) -> None:
    root = warehouse / "keep" / "t.lance"
    if nested:
        (root / "_cleanup").mkdir()
        (root / "_cleanup" / "x.json").write_text("[" * 200_000)
    left = root / "_versions" / "18446744073709551600.manifest#1"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    with no_room_below(root):
        (done,) = table.vacuum(0).collect()
    assert done.versions_removed == 4
    assert not left.exists()
    assert opened(warehouse).count_rows() == 40


def test_a_table_is_optimized(table: LanceTable, warehouse: Path) -> None:
    spark = table.toDF().sparkSession
    spark.sql(
        f"ALTER TABLE {NAME} SET TBLPROPERTIES ('lancelake.optimize.min_fragments_saved'='2')"
    )
    (done,) = table.optimizeAll().collect()
    assert (done.fragments_removed, done.fragments_added) == (4, 1)
    assert opened(warehouse).count_rows() == 40


def test_a_sound_table_has_no_errors(table: LanceTable) -> None:
    assert table.check(data=True, versions="all").where("severity = 'error'").collect() == []
    assert table.repair(dryRun=True).collect() == []


def test_a_lost_file_is_found_and_given_up(table: LanceTable, warehouse: Path) -> None:
    folder = warehouse / "keep" / "t.lance" / "data"
    fragment = opened(warehouse).get_fragments()[0]
    (folder / fragment.data_files()[0].path).unlink()
    assert table.check().where("severity = 'error'").count() >= 1
    assert [row.action for row in table.repair(dryRun=True).collect()] == ["left"]
    assert "repaired" in [row.action for row in table.repair(dropLost=True).collect()]
    assert opened(warehouse).count_rows() == 30


def test_a_vacuum_reports_the_files_it_kept_for_writes_in_progress(
    table: LanceTable, warehouse: Path
) -> None:
    (before,) = table.vacuum().collect()
    assert (before.files_kept, before.kept_until) == (0, None)
    orphan = Path(opened(warehouse).uri) / "data" / "orphan.lance"
    orphan.write_bytes(b"12345")
    os.utime(orphan, (0, datetime(2100, 1, 1, tzinfo=UTC).timestamp()))
    (done,) = table.vacuum().collect()
    assert (done.files_kept, done.bytes_kept) == (1, 5)
    assert done.kept_until == "2100-01-08T00:00:00+00:00"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("compact('keep.t')", {"fragments_removed": 4, "fragments_added": 1}),
        ("compact('keep.t', where => 'day < 20')", {"fragments_removed": 2}),
        ("compact('keep.t', target_rows => 20)", {"fragments_added": 2}),
        ("compact('keep.t', sort_by => 'day DESC, id')", {"fragments_removed": 4}),
        ("compact('keep.t', z_order_by => 'day, id')", {"fragments_removed": 4}),
        ("cleanup('keep.t')", {"versions_removed": 0, "is_dry_run": False}),
        ("cleanup('keep.t', retain_versions => 2)", {"versions_removed": 3}),
        ("cleanup('keep.t', older_than => '0s', dry_run => true)", {"versions_removed": 4}),
        ("optimize('keep.t', dry_run => true)", {"is_dry_run": True}),
    ],
)
def test_procedures_keep_tables_in_shape(
    spark: SparkSession, table: LanceTable, call: str, expected: dict[str, object]
) -> None:
    (row,) = spark.sql(f"CALL lance.system.{call}").collect()
    assert {name: row[name] for name in expected} == expected


def test_procedures_check_and_repair(spark: SparkSession, table: LanceTable) -> None:
    call = "CALL lance.system.check('keep.t', data => true, versions => 'all')"
    assert [row.code for row in spark.sql(call).collect() if row.severity == "error"] == []
    assert spark.sql("CALL lance.system.repair('keep.t', dry_run => true)").collect() == []


@pytest.mark.parametrize(
    "call",
    [
        "cleanup('keep.t', older_than => 'yesterday')",
        "cleanup('keep.t', older_than => '9999999999years')",
        "compact('keep.t', sort_by => 'id sideways')",
        "compact('keep.t', sort_by => 'id', z_order_by => 'id')",
        "check('keep.t', versions => 'some')",
    ],
)
def test_arguments_that_mean_nothing_are_refused(
    spark: SparkSession, table: LanceTable, call: str
) -> None:
    error = failure(lambda: spark.sql(f"CALL lance.system.{call}").collect())
    assert isinstance(error, InvalidRequestError)
