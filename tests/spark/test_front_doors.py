"""Lance tables where no Python program of the user runs: spark-sql, JDBC and Spark Connect."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lancelake
from tests.support.front_doors import (
    connect_server,
    run_beeline,
    run_python,
    run_sql,
    thrift_server,
)

SCRIPT = """
CREATE NAMESPACE lance.db;
CREATE TABLE lance.db.t (id BIGINT, v STRING);
INSERT INTO lance.db.t SELECT id, concat('v', id) FROM range(1000);
CREATE TABLE lance.db.copy AS SELECT * FROM lance.db.t WHERE id < 10;
SELECT 'read', count(*), max(id) FROM lance.db.t WHERE id < 500;
EXPLAIN SELECT id FROM lance.db.t WHERE id < 5;
UPDATE lance.db.t SET v = 'x' WHERE id = 7;
MERGE INTO lance.db.t t
    USING (SELECT 7 AS id, 'm' AS v UNION ALL SELECT 5000, 'n') s
    ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
DELETE FROM lance.db.t WHERE id BETWEEN 900 AND 999;
SELECT 'changed', id, v FROM lance.db.t WHERE id IN (7, 5000) ORDER BY id;
CALL lance.system.tag('db.t', 'first', 2);
SELECT 'tagged', count(*) FROM lance.db.t VERSION AS OF 'first';
SELECT 'joined', count(*) FROM lance.db.t JOIN lance.db.copy USING (id);
OPTIMIZE lance.db.t;
SELECT 'history', count(*) > 4 FROM lance.db.t.history;
"""
ROWS = [
    ["read", "500", "499"],
    ["changed", "7", "m"],
    ["changed", "5000", "n"],
    ["tagged", "1000"],
    ["joined", "10"],
    ["history", "true"],
]


def rows_in(output: str) -> list[list[str]]:
    """Return the rows that a shell printed."""
    lines = [line.split("\t") for line in output.splitlines()]
    return [line for line in lines if line[0] in FIRST]


def ensure_right(root: Path) -> None:
    table = lancelake.dataset(root / "tables" / "db" / "t.lance")
    assert (table.count_rows(), table.count_rows("id = 5000")) == (901, 1)
    assert lancelake.dataset(root / "tables" / "db" / "copy.lance").count_rows() == 10


def test_the_sql_shell(tmp_path: Path) -> None:
    # The first statement is one for our parser, and names a catalog that nobody has loaded.
    lancelake.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "tables" / "old.lance")
    done = run_sql(tmp_path, "OPTIMIZE lance.old;" + SCRIPT)
    assert done.returncode == 0, done.stderr
    assert rows_in(done.stdout) == ROWS
    assert "filters [id IS NOT NULL, id < 5]" in done.stdout
    ensure_right(tmp_path)


def test_jdbc(tmp_path: Path) -> None:
    with thrift_server(tmp_path) as server:
        done = run_beeline(tmp_path, server.port, SCRIPT)
    assert rows_in(done.stdout) == ROWS, done.stderr
    ensure_right(tmp_path)


CLIENT = """
import os, signal, subprocess, sys
from contextlib import contextmanager
from pyspark.sql import SparkSession

port, server, script = sys.argv[1:]


def show(*values):
    print("\\t".join(str(value).lower() if value is True else str(value) for value in values))


@contextmanager
def connected():
    # A session that is left open blocks the end of the process.
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    try:
        yield spark
    finally:
        spark.stop()


def run(spark):
    for statement in script.split(";"):
        if statement.strip():
            for row in spark.sql(statement).collect():
                show(*row)
    frame = spark.range(5).selectExpr("id + 9000 AS id", "'c' AS v")
    frame.writeTo("lance.db.t").append()
    show("appended", spark.table("lance.db.t").count())
    planner = ["pgrep", "-P", server, "-f", "planner.process"]
    (pid,) = subprocess.run(planner, capture_output=True, text=True, check=True).stdout.split()
    os.kill(int(pid), signal.SIGKILL)
    with connected() as other:
        show("other session", other.table("lance.db.t").count())
    spark.sql("DELETE FROM lance.db.t WHERE id >= 9000").collect()
    show("same session", spark.table("lance.db.t").count())
    path = os.path.join(os.getcwd(), "tables/db/t.lance")
    show("by path", spark.sql(f"SELECT * FROM lance.`{path}`").count())
    show("by format", spark.read.format("lance").load(path).count())


with connected() as spark:
    run(spark)
"""
CLIENT_ROWS = [
    *ROWS,
    ["appended", "906"],
    ["other session", "906"],
    ["same session", "901"],
    ["by path", "901"],
    ["by format", "901"],
]


def test_spark_connect_with_a_planner_that_is_killed_between_queries(tmp_path: Path) -> None:
    with connect_server(tmp_path) as server:
        done = run_python(tmp_path, CLIENT, str(server.port), str(server.pid), SCRIPT)
    assert done.returncode == 0, done.stderr
    assert rows_in(done.stdout) == CLIENT_ROWS
    ensure_right(tmp_path)


FIRST = {row[0] for row in CLIENT_ROWS}
