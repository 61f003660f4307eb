"""Declarative pipelines whose tables are Lance tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import lancelake
from tests.support.front_doors import connect_server, run_pipelines

SPEC = """
name: events
storage: {storage}
catalog: lance
database: db
libraries:
  - glob:
      include: transformations/**
"""
PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.materialized_view
def squares() -> DataFrame:
    return spark.table("events").selectExpr("id", "id * id AS square")


@dp.table
def seen() -> DataFrame:
    return spark.readStream.table("events")


dp.create_streaming_table("together")


@dp.append_flow(target="together")
def even() -> DataFrame:
    return spark.readStream.table("lance.db.events").where("id % 2 = 0")


@dp.append_flow(target="together")
def odd() -> DataFrame:
    return spark.readStream.table("lance.db.events").where("id % 2 = 1")
"""
SQL = """
CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n, max(square) AS largest FROM squares;
CREATE STREAMING TABLE copies AS SELECT id + 1 AS id FROM STREAM seen;
"""


def write_project(root: Path) -> Path:
    project = root / "project"
    (project / "transformations").mkdir(parents=True)
    spec = SPEC.format(storage=(project / "storage").as_uri())
    (project / "spark-pipeline.yml").write_text(spec, encoding="utf-8")
    (project / "transformations/tables.py").write_text(PYTHON, encoding="utf-8")
    (project / "transformations/more.sql").write_text(SQL, encoding="utf-8")
    return project


def add_events(root: Path, ids: range) -> None:
    lancelake.write_dataset(pa.table({"id": ids}), root / "tables/db/events.lance", mode="append")


def rows(root: Path, name: str) -> list[dict[str, int]]:
    found = lancelake.dataset(root / f"tables/db/{name}.lance").to_table().to_pylist()
    return sorted(found, key=lambda row: list(row.values()))


def ensure_tables_have(root: Path, ids: range) -> None:
    assert rows(root, "squares") == [{"id": i, "square": i * i} for i in ids]
    assert rows(root, "counted") == [{"n": len(ids), "largest": ids[-1] ** 2}]
    assert rows(root, "seen") == rows(root, "together") == [{"id": i} for i in ids]
    assert rows(root, "copies") == [{"id": i + 1} for i in ids]


def test_views_and_streams_follow_a_table_and_are_made_again(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    with connect_server(tmp_path) as server:

        def run(*arguments: str) -> None:
            # The address is an option of spark-submit.
            done = run_pipelines(project, *arguments, "--remote", f"sc://127.0.0.1:{server.port}")
            assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]

        add_events(tmp_path, range(10))
        run()
        ensure_tables_have(tmp_path, range(10))
        versions = lancelake.dataset(tmp_path / "tables/db/seen.lance").version
        add_events(tmp_path, range(10, 15))
        run()
        ensure_tables_have(tmp_path, range(15))
        seen = lancelake.dataset(tmp_path / "tables/db/seen.lance")
        assert seen.to_table(filter=f"_row_created_at_version > {versions}").num_rows == 5
        run("--full-refresh-all")
        ensure_tables_have(tmp_path, range(15))


def test_the_project_that_the_command_writes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lancelake", "pipelines", "init", "shop"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert made.stdout.splitlines()[1:] == [
        "  cd shop",
        "  SPARK_CONF_DIR=conf spark-pipelines run",
    ]
    done = run_pipelines(tmp_path / "shop", SPARK_CONF_DIR="conf")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    tables = tmp_path / "shop/tables/db"
    assert lancelake.dataset(tables / "orders.lance").count_rows() == 100
    totals = lancelake.dataset(tables / "totals.lance").to_table()
    assert (totals.num_rows, sum(totals["amount"].to_pylist())) == (7, 7425.0)
