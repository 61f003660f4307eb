"""DELETE, UPDATE and MERGE by SQL, against what the statements mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark import InheritableThread
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import lancelake
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.spark import error_of
from lancelake.spark.connector.writable_table import WritableTable
from lancelake.spark.jobs import row_maker
from lancelake.spark.jobs.row_maker import addressed_frame
from lancelake.spark.jvm.catalyst import items
from lancelake.table.merge.match import KeyLookup

COLUMNS = "id, concat('n', id) AS name, id / 2 AS score, named_struct('a', id, 'b', 'x') AS s"
KINDS = ("inserted", "updated", "deleted")


@pytest.fixture(params=["true", "false"], ids=["stable_row_ids", "addresses"])
def table(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Return the name of a table with the ids 0 to 9 in two fragments."""
    rows = spark.sql(f"SELECT {COLUMNS} FROM range(0, 10, 1, 2)")
    rows.writeTo("lance.rows").option("stableRowIds", request.param).create()
    yield "lance.rows"
    spark.sql("DROP TABLE lance.rows")


def dataset(warehouse: Path) -> lancelake.LanceDataset:
    """Return the table, checked, without Spark."""
    stored = lancelake.LanceDataset(warehouse / "rows.lance")
    stored.validate()
    return stored


def names(warehouse: Path) -> dict[int, Any]:
    """Return the names by id."""
    rows = dataset(warehouse).to_table(columns=["id", "name"]).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["name"] for row in rows}


def plain(*ids: int) -> dict[int, str]:
    """Return names as they were in the beginning."""
    return {i: f"n{i}" for i in ids}


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("id > 6", range(7)),
        ("sqrt(id) > 2", range(5)),
        ("(id < 5) <=> (name = 'n7' OR NOT cast(id AS boolean))", [1, 2, 3, 4, 7]),
        ("id IN (SELECT id + 1 FROM range(3))", [0, 4, 5, 6, 7, 8, 9]),
        ("EXISTS (SELECT 1 FROM range(2, 4) r WHERE r.id = rows.id)", [0, 1, *range(4, 10)]),
        ("name IS NULL", range(10)),
        ("true", []),
    ],
)
def test_rows_are_deleted(
    spark: SparkSession, table: str, warehouse: Path, condition: str, left: list[int]
) -> None:
    spark.sql(f"DELETE FROM {table} WHERE {condition}")
    assert names(warehouse) == plain(*left)


def test_rows_are_updated_with_their_own_values(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    spark.sql(f"UPDATE {table} SET name = concat(upper(name), id), score = NULL WHERE id < 2")
    assert names(warehouse) == {0: "N00", 1: "N11"} | plain(*range(2, 10))
    scores = dataset(warehouse).to_table(columns=["score"], filter="id < 3").to_pydict()
    assert sorted(scores["score"], key=str) == [1.0, None, None]


def test_a_member_of_a_struct_is_updated(spark: SparkSession, table: str, warehouse: Path) -> None:
    spark.sql(f"UPDATE {table} SET s.a = 100 WHERE id = 3")
    rows = dataset(warehouse).to_table(columns=["s"], filter="id = 3").to_pylist()
    assert rows == [{"s": {"a": 100, "b": "x"}}]


def test_values_and_conditions_may_be_queries(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    spark.sql(
        f"UPDATE {table} AS t SET name = (SELECT max(concat('q', r.id)) FROM range(5) r "
        "WHERE r.id < t.id) WHERE t.id IN (SELECT id FROM range(2, 4))"
    )
    assert names(warehouse) == plain(0, 1) | {2: "q1", 3: "q2"} | plain(*range(4, 10))


def test_a_merge_does_what_its_clauses_say(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    spark.sql(
        f"""MERGE INTO {table} t
        USING (SELECT id, concat('m', id) AS name FROM range(0, 20, 4)) s ON t.id = s.id
        WHEN MATCHED AND s.id = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.name = concat(t.name, s.name)
        WHEN NOT MATCHED AND s.id < 15 THEN INSERT (id, name) VALUES (s.id, s.name)
        WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET name = 'lonely'
        WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN DELETE"""
    )
    changed = {3: "lonely", 4: "n4m4", 8: "n8m8", 12: "m12"}
    assert names(warehouse) == plain(1, 2, 6, 7, 9) | changed


def test_a_merge_of_whole_rows_may_read_the_table_itself(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    spark.sql(
        f"""MERGE INTO {table} t
        USING (SELECT id + 5 AS id, upper(name) AS name, score, s FROM {table} WHERE id > 2) s
        ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
    )
    moved = {i + 5: f"N{i}" for i in range(3, 10)}
    assert names(warehouse) == plain(*range(8)) | moved


def test_a_frame_is_merged(spark: SparkSession, table: str, warehouse: Path) -> None:
    source = spark.sql("SELECT id, concat('f', id) AS name FROM range(8, 12)").alias("s")
    (
        source.mergeInto(table, f.expr("s.id = rows.id"))
        .whenMatched()
        .update({"name": f.col("s.name")})
        .whenNotMatched(f.col("s.id") > 10)
        .insert({"id": f.col("s.id"), "name": f.col("s.name")})
        .merge()
    )
    assert names(warehouse) == plain(*range(8)) | {8: "f8", 9: "f9", 11: "f11"}


def test_columns_of_the_source_may_have_one_name(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    spark.sql(
        f"""MERGE INTO {table} t
        USING (SELECT a.id AS k, b.name, c.name FROM range(1) a
               JOIN VALUES ('x') AS b(name) JOIN VALUES ('y') AS c(name)) s
        ON t.id = s.k WHEN MATCHED THEN UPDATE SET name = 'one'"""
    )
    assert names(warehouse) == {0: "one"} | plain(*range(1, 10))


def test_a_merge_adds_columns_when_it_may(spark: SparkSession, table: str, warehouse: Path) -> None:
    spark.sql(
        f"""MERGE WITH SCHEMA EVOLUTION INTO {table} t
        USING (SELECT 3L AS id, 'new' AS brand UNION ALL SELECT 30L, 'also') s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
    )
    rows = dataset(warehouse).to_table(filter="brand IS NOT NULL").to_pylist()
    assert sorted((row["id"], row["name"], row["brand"]) for row in rows) == [
        (3, "n3", "new"),
        (30, None, "also"),
    ]


def test_only_changed_rows_are_written(spark: SparkSession, table: str, warehouse: Path) -> None:
    spark.sql(f"UPDATE {table} SET name = 'x' WHERE id IN (1, 8)")
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT 2L AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = 'y'"
    )
    fragments = dataset(warehouse).get_fragments()
    rows = sum(fragment.physical_rows for fragment in fragments)
    assert rows == 10 + 2 + 1
    assert sum(fragment.num_deletions for fragment in fragments) == 3


def test_a_merge_reads_only_the_key_of_rows_it_leaves(
    spark: SparkSession, table: str, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Sequence[str]] = []

    def watched(
        spark: SparkSession, base: Snapshot, columns: Sequence[str], lookup: KeyLookup | None = None
    ) -> DataFrame:
        read.append(tuple(columns))
        return addressed_frame(spark, base, columns, lookup)

    monkeypatch.setattr(row_maker, "addressed_frame", watched)
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT 2L AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = concat(t.name, 'y')"
    )
    assert read == [("id",)]
    assert names(warehouse) == plain(0, 1) | {2: "n2y"} | plain(*range(3, 10))


def test_changes_at_the_same_time_all_land(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    def change(word: str) -> None:
        spark.sql(f"UPDATE {table} SET name = concat(name, '{word}') WHERE id = 4")

    threads = [InheritableThread(target=change, args=(word,)) for word in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names(warehouse)[4] in ("n4ab", "n4ba")


def test_a_command_changes_the_branch_it_names(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    spark.sql("CALL lance.system.branch('rows', 'trial')")
    spark.sql(f"UPDATE {table}.branch_trial SET name = 'b'")
    spark.sql(f"DELETE FROM {table}.branch_trial WHERE id > 0")
    assert names(warehouse) == plain(*range(10))
    assert [row.name for row in spark.table(f"{table}.branch_trial").collect()] == ["b"]


def test_two_source_rows_for_one_row_are_refused(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.sql(
            f"MERGE INTO {table} t USING (SELECT 2L AS id FROM range(2)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET name = 'x'"
        )
    assert isinstance(error_of(caught.value), InvalidRequestError)
    assert names(warehouse) == plain(*range(10))


def test_a_tag_is_not_changed(spark: SparkSession, table: str) -> None:
    spark.sql("CALL lance.system.tag('rows', 'first')")
    with pytest.raises(PySparkException, match="cannot be changed") as caught:
        spark.sql(f"UPDATE {table}.tag_first SET name = 'x'")
    assert isinstance(error_of(caught.value), InvalidRequestError)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE {} SET nothing = 1", "UNRESOLVED_COLUMN"),
        ("DELETE FROM {} WHERE nothing = 1", "UNRESOLVED_COLUMN"),
        ("UPDATE lance.no.where SET a = 1", "TABLE_OR_VIEW_NOT_FOUND"),
    ],
)
def test_text_that_spark_cannot_parse_raises_its_error(
    spark: SparkSession, table: str, statement: str, says: str
) -> None:
    with pytest.raises(AnalysisException, match=says):
        spark.sql(statement.format(table))


def test_a_cached_table_shows_the_change(spark: SparkSession, table: str) -> None:
    cached = spark.table(table).cache()
    assert cached.count() == 10
    spark.sql(f"DELETE FROM {table} WHERE id < 5")
    assert spark.table(table).count() == 5
    cached.unpersist()


def change_meanwhile(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[lancelake.LanceDataset], None]
) -> None:
    """Let another writer change the table after a command was resolved, before it runs."""
    opened = WritableTable.newest

    def newest(self: WritableTable) -> Snapshot:
        change(lancelake.LanceDataset(self.snapshot.location.uri))
        return opened(self)

    monkeypatch.setattr(WritableTable, "newest", newest)


CHANGES = {
    "update": "UPDATE lance.rows SET name = 'new' WHERE id = 1",
    "merge": "MERGE INTO lance.rows t USING (SELECT 1L AS id) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET name = 'new'",
}


@pytest.mark.parametrize("statement", CHANGES.values(), ids=CHANGES.keys())
def test_a_column_that_came_meanwhile_keeps_its_values(
    spark: SparkSession,
    table: str,
    warehouse: Path,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
) -> None:
    change_meanwhile(monkeypatch, lambda ds: ds.add_columns({"more": "id * 3"}))
    spark.sql(statement)
    assert names(warehouse) == plain(*range(10)) | {1: "new"}
    rows = dataset(warehouse).to_table(columns=["id", "more"]).to_pylist()
    assert all(row["more"] == row["id"] * 3 for row in rows)


@pytest.mark.parametrize("statement", CHANGES.values(), ids=CHANGES.keys())
def test_a_column_that_a_command_does_not_name_may_go_meanwhile(
    spark: SparkSession,
    table: str,
    warehouse: Path,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
) -> None:
    change_meanwhile(monkeypatch, lambda ds: ds.drop_columns(["score"]))
    spark.sql(statement)
    assert names(warehouse) == plain(*range(10)) | {1: "new"}


def counts(spark: SparkSession, statement: str) -> list[int]:
    """Return the numbers of inserted, updated and deleted rows that Spark's UI shows."""
    spark.sql(statement)
    store = spark._jsparkSession.sharedState().statusStore()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    # The jobs of a command are executions of their own.
    for execution in reversed(items(store.executionsList())):
        by_name = {m.name(): m.accumulatorId() for m in items(execution.metrics())}
        if all(f"number of {k} rows" in by_name for k in KINDS):
            break
    values = store.executionMetrics(execution.executionId())
    return [int(values.apply(by_name[f"number of {k} rows"])) for k in KINDS]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM {t} WHERE id = 3", [0, 0, 1]),
        ("UPDATE {t} SET score = 0 WHERE id IN (1, 2)", [0, 2, 0]),
        (
            "MERGE INTO {t} USING (SELECT * FROM VALUES (1), (99) AS s(k)) ON id = k "
            "WHEN MATCHED THEN UPDATE SET score = 7 WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
            [1, 1, 0],
        ),
    ],
    ids=["delete", "update", "merge"],
)
def test_a_command_reports_its_numbers_of_rows(
    spark: SparkSession, table: str, statement: str, expected: list[int]
) -> None:
    assert counts(spark, statement.format(t=table)) == expected


@pytest.mark.parametrize(
    "more", ["", " WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.k, 'new')"]
)
def test_a_row_may_be_deleted_for_several_rows_of_the_source(
    spark: SparkSession, table: str, warehouse: Path, more: str
) -> None:
    source = "(SELECT * FROM VALUES (1L), (1L), (2L), (20L) AS v(k))"
    query = f"MERGE INTO {table} t USING {source} s ON t.id = s.k WHEN MATCHED THEN DELETE{more}"
    spark.sql(query)
    assert names(warehouse) == plain(0, *range(3, 10)) | ({20: "new"} if more else {})
    done = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()
    assert (done.operation, done.metrics["rows_deleted"]) == ("MERGE", 2)


@pytest.mark.parametrize(
    ("condition", "shown"), [("t.id = s.k", "(id = 1;"), ("t.score * 2 < s.k", "(score = 0.0;")]
)
def test_the_row_of_an_ambiguous_merge_is_named(
    spark: SparkSession, table: str, condition: str, shown: str
) -> None:
    source = "(SELECT * FROM VALUES (1L), (1L) AS v(k))"
    with pytest.raises(PySparkException) as caught:
        spark.sql(
            f"MERGE INTO {table} t USING {source} s ON {condition} "
            "WHEN MATCHED THEN UPDATE SET name = 'x'"
        )
    assert f"match the same row of the table {shown}" in str(error_of(caught.value))
