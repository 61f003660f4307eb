"""Tables made, altered and renamed by SQL, and procedures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import (
    AnalysisException,
    PySparkException,
    UnsupportedOperationException,
)
from pyspark.sql import SparkSession

import lancelake
from lancelake.errors import (
    InvalidRequestError,
    NotFoundError,
    RefNotFoundError,
    TableNotFoundError,
    UnsupportedError,
)
from lancelake.spark import LanceTable, error_of
from tests.support.official import Official


@pytest.fixture(scope="module", autouse=True)
def namespace(spark: SparkSession) -> Iterator[None]:
    """Have a namespace that goes with all its tables."""
    spark.sql("CREATE NAMESPACE lance.d")
    yield
    spark.sql("DROP NAMESPACE lance.d CASCADE")


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """Return the name of a table with three rows, a comment and a property."""
    spark.sql(
        "CREATE TABLE lance.d.t (id bigint COMMENT 'key', n int, s struct<a: int>) "
        "COMMENT 'for a test' TBLPROPERTIES ('team' = 'x')"
    )
    spark.sql("INSERT INTO lance.d.t SELECT id, id * 10, named_struct('a', id) FROM range(3)")
    yield "lance.d.t"
    spark.sql("DROP TABLE IF EXISTS lance.d.t")


def dataset(warehouse: Path, name: str = "t") -> lancelake.LanceDataset:
    """Return a table, checked, without Spark."""
    stored = lancelake.LanceDataset(warehouse / "d" / f"{name}.lance")
    stored.validate()
    return stored


def columns(spark: SparkSession, table: str) -> dict[str, tuple[str, str | None]]:
    """Return the type and the comment of each column."""
    described = spark.sql(f"DESCRIBE TABLE {table}").collect()
    return {row.col_name: (row.data_type, row.comment) for row in described}


def failure(action: Callable[[], object]) -> Exception | None:
    """Return the error of ours inside what an action raises."""
    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        action()
    return error_of(caught.value)


def test_columns_come_at_their_place(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (z string COMMENT 'last', y int FIRST)")
    assert list(columns(spark, table)) == ["y", "id", "n", "s", "z"]
    assert columns(spark, table)["z"] == ("string", "last")
    row = spark.sql(f"SELECT * FROM {table} WHERE id = 1").collect()[0]
    assert row.asDict(recursive=True) == {
        "y": None,
        "id": 1,
        "n": 10,
        "s": {"a": 1},
        "z": None,
    }


def test_columns_are_altered(spark: SparkSession, table: str, warehouse: Path) -> None:
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN n COMMENT 'tens'")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN n TYPE bigint")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN n TO tens")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN tens FIRST")
    assert columns(spark, table) == {
        "tens": ("bigint", "tens"),
        "id": ("bigint", "key"),
        "s": ("struct<a:int>", None),
    }
    assert sorted(dataset(warehouse).to_table()["tens"].to_pylist()) == [0, 10, 20]


def test_columns_are_dropped(spark: SparkSession, table: str, warehouse: Path) -> None:
    spark.sql(f"ALTER TABLE {table} DROP COLUMN n")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN IF EXISTS nothing")
    assert dataset(warehouse).schema.names == ["id", "s"]


def test_a_cast_that_loses_is_refused(spark: SparkSession, table: str) -> None:
    error = failure(lambda: spark.sql(f"ALTER TABLE {table} ALTER COLUMN n TYPE decimal(20, 0)"))
    assert isinstance(error, UnsupportedError)


def test_a_new_column_must_be_nullable(spark: SparkSession, table: str) -> None:
    error = failure(lambda: spark.sql(f"ALTER TABLE {table} ADD COLUMN q int NOT NULL"))
    assert isinstance(error, InvalidRequestError)


def test_properties_are_set_and_unset(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = '1', 'b' = '2')")
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('team', 'a')")
    result = {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert {key: result.get(key) for key in ("a", "b", "team")} == {
        "a": None,
        "b": "2",
        "team": None,
    }
    assert "for a test" in str(spark.sql(f"DESCRIBE EXTENDED {table}").collect())


@pytest.mark.parametrize("name", ["d.other", "lance.d.other"])
def test_a_table_is_renamed(spark: SparkSession, table: str, warehouse: Path, name: str) -> None:
    spark.sql(f"ALTER TABLE {table} RENAME TO {name}")
    assert dataset(warehouse, "other").count_rows() == 3
    assert not spark.catalog.tableExists(table)
    with pytest.raises(AnalysisException, match="already exists"):
        spark.sql("CREATE TABLE lance.d.other (id int)")
    spark.sql("DROP TABLE lance.d.other")


def test_a_version_is_rolled_back_to(spark: SparkSession, table: str) -> None:
    spark.sql("CALL lance.system.tag('d.t', 'good')")
    spark.sql(f"DELETE FROM {table}")
    made = spark.sql("CALL lance.system.rollback(table => 'lance.d.t', version => 'good')")
    assert [row.version for row in made.collect()] == [4]
    assert spark.table(table).count() == 3


def test_tags_and_branches_come_and_go(spark: SparkSession, table: str) -> None:
    assert spark.sql("CALL lance.system.tag('d.t', 'x', '1')").collect()[0].asDict() == {
        "name": "x",
        "version": 1,
    }
    spark.sql("CALL lance.system.branch('d.t', 'b')")
    refs = spark.sql(f"SELECT name FROM {table}.refs").collect()
    assert [row.name for row in refs] == ["x", "b"]
    spark.sql("CALL lance.system.drop_tag('d.t', 'x')")
    spark.sql("CALL lance.system.drop_branch('d.t', 'b')")
    assert spark.sql(f"SELECT name FROM {table}.refs").collect() == []


@pytest.mark.parametrize("shallow", ["true", "false"])
def test_a_table_is_cloned(
    spark: SparkSession, table: str, warehouse: Path, tmp_path: Path, shallow: str
) -> None:
    target = tmp_path / "copy.lance"
    spark.sql(f"CALL lance.system.clone('d.t', '{target}', {shallow})")
    assert lancelake.LanceDataset(target).to_table().equals(dataset(warehouse).to_table())


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("nothing('d.t')", NotFoundError),
        ("tag('d.nothing', 'x')", TableNotFoundError),
        ("tag('d.t', NULL)", InvalidRequestError),
        ("rollback('d.t', 'nothing')", RefNotFoundError),
    ],
)
def test_a_call_that_cannot_work_says_why(
    spark: SparkSession, table: str, call: str, kind: type[Exception]
) -> None:
    assert isinstance(failure(lambda: spark.sql(f"CALL lance.system.{call}").collect()), kind)


def test_a_table_is_found_by_name(spark: SparkSession, table: str) -> None:
    assert LanceTable.forName(spark, table).version() == 2
    spark.sql("USE lance.d")
    try:
        assert LanceTable.forName(spark, "t").version() == 2
        assert LanceTable.forName(spark, "d.t").version() == 2
    finally:
        spark.catalog.setCurrentCatalog("spark_catalog")
    with pytest.raises(TableNotFoundError):
        LanceTable.forName(spark, "lance.d.nothing")
    with pytest.raises(TableNotFoundError, match="spark_catalog"):
        LanceTable.forName(spark, "d.t")


def test_a_branch_is_found_by_name(spark: SparkSession, table: str, warehouse: Path) -> None:
    spark.sql("CALL lance.system.branch('d.t', 'b')")
    LanceTable.forName(spark, f"{table}.branch_b").delete("id > 0")
    assert spark.table(f"{table}.branch_b").count() == 1
    assert dataset(warehouse).count_rows() == 3
    spark.sql("CALL lance.system.tag('d.t.branch_b', 'small')")
    assert spark.table(f"{table}.tag_small").count() == 1
    with pytest.raises(InvalidRequestError, match="neither"):
        LanceTable.forName(spark, f"{table}.tag_small")


def test_official_releases_read_what_sql_wrote(
    spark: SparkSession, table: str, warehouse: Path, official_4: Official, official_14: Official
) -> None:
    spark.sql(f"ALTER TABLE {table} ADD COLUMN more string")
    spark.sql(f"UPDATE {table} SET more = concat('m', id) WHERE id > 0")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT id FROM range(2, 5)) x ON t.id = x.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, n) VALUES (x.id, 7)"
    )
    expected = rows(dataset(warehouse).to_table())
    assert [row["id"] for row in expected] == [0, 1, 3, 4]
    for release in (official_4, official_14):
        assert rows(release.read(warehouse / "d/t.lance")) == expected
        release.run(warehouse / "d/t.lance", "lance.dataset(uri).validate()")


def rows(found: pa.Table) -> list[dict[str, Any]]:
    """Return rows by id."""
    return sorted(found.to_pylist(), key=lambda row: int(row["id"]))


def test_the_last_member_of_a_struct_is_not_dropped(spark: SparkSession, table: str) -> None:
    error = failure(lambda: spark.sql(f"ALTER TABLE {table} DROP COLUMN s.a"))
    assert isinstance(error, InvalidRequestError)
    assert "column s would be left without fields" in str(error)
    assert "s" in columns(spark, table)
    with pytest.raises(InvalidRequestError, match="without fields"):
        LanceTable.forName(spark, table).dropColumns("s.a")


def test_a_location_is_not_changed(spark: SparkSession, table: str) -> None:
    error = failure(lambda: spark.sql(f"ALTER TABLE {table} SET LOCATION '/elsewhere'"))
    assert isinstance(error, UnsupportedError)
    assert "/elsewhere" not in str(spark.sql(f"DESCRIBE EXTENDED {table}").collect())


def test_other_formats_are_refused(spark: SparkSession, table: str) -> None:
    created = failure(lambda: spark.sql("CREATE TABLE lance.d.files (id int) USING parquet"))
    assert isinstance(created, UnsupportedError)
    frame = spark.range(1).write.format("orc")
    assert isinstance(failure(lambda: frame.saveAsTable("lance.d.files")), UnsupportedError)
    spark.sql("CREATE OR REPLACE TABLE lance.d.plain AS SELECT 1 AS id")
    spark.range(2).write.mode("overwrite").saveAsTable("lance.d.plain")
    assert spark.table("lance.d.plain").count() == 2


@pytest.mark.parametrize("rows", ["(id int)", "AS SELECT 1 AS id"])
def test_properties_choose_how_a_table_is_made(spark: SparkSession, rows: str) -> None:
    head, tail = (rows, "") if rows.startswith("(") else ("", rows)
    spark.sql("DROP TABLE IF EXISTS lance.d.made")
    spark.sql(
        f"CREATE TABLE lance.d.made {head} USING lance TBLPROPERTIES "
        f"('dataStorageVersion' = '2.2', 'stableRowIds' = 'false', 'team' = 'x') {tail}"
    )
    detail = LanceTable.forName(spark, "lance.d.made").detail().collect()[0]
    assert (detail.dataStorageVersion, detail.stableRowIds) == ("2.2", False)
    assert detail.properties == {"team": "x"}
    frame = {r.key: r.value for r in spark.sql("SHOW TBLPROPERTIES lance.d.made").collect()}
    assert frame["dataStorageVersion"] == "2.2"
    change = "ALTER TABLE lance.d.made SET TBLPROPERTIES ('dataStorageVersion' = '2.1')"
    assert isinstance(failure(lambda: spark.sql(change)), UnsupportedError)


def test_options_do_not_choose_versions_of_named_tables(spark: SparkSession, table: str) -> None:
    error = failure(lambda: spark.sql(f"SELECT * FROM {table} WITH (version = 1)").collect())
    assert isinstance(error, InvalidRequestError)
    assert "VERSION AS OF" in str(error)


def test_a_column_that_cannot_be_placed_is_not_added(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} ADD COLUMN placed STRUCT<a: INT>")
    error = failure(lambda: spark.sql(f"ALTER TABLE {table} ADD COLUMN placed.b INT FIRST"))
    assert isinstance(error, UnsupportedError)
    assert spark.table(table).schema["placed"].dataType.names == ["a"]


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE {t}.branch_trial",
        "DROP TABLE {t}.tag_first",
        "DROP TABLE {t}.history PURGE",
        "DROP TABLE IF EXISTS {t}.versions",
        "ALTER TABLE {t} RENAME TO {t}.history",
        "ALTER TABLE {t}.branch_trial RENAME TO lance.elsewhere",
        "CREATE TABLE {t}.branch_new (id INT)",
        "CREATE OR REPLACE TABLE {t}.branch_trial AS SELECT 1 AS id",
    ],
)
def test_parts_of_a_table_are_not_handled_as_tables(
    spark: SparkSession, table: str, statement: str
) -> None:
    spark.sql(f"CALL lance.system.branch('{table}', 'trial')")
    spark.sql(f"CALL lance.system.tag('{table}', 'first')")
    with pytest.raises(UnsupportedOperationException, match="of a table, and cannot be") as caught:
        spark.sql(statement.format(t=table))
    assert ("lance.system.drop_branch" in str(caught.value)) == ("branch_" in statement)
    assert spark.table(f"{table}.branch_trial").count() == spark.table(table).count()


def test_a_missing_part_of_a_table_is_not_dropped(spark: SparkSession, table: str) -> None:
    spark.sql(f"DROP TABLE IF EXISTS {table}.branch_none")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"DROP TABLE {table}.branch_none")
    assert not spark.catalog.tableExists(f"{table}.tag_none")
