"""Blocks for Spark on the pages that are not about Spark run."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import lancelake
from lancelake.spark import register, session
from tests.docs.pages import run_page
from tests.support.s3_server import s3_server

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def blocks(path: Path, language: str) -> list[str]:
    """Return the blocks of a page in a language."""
    pattern = re.compile(rf"^ *```{language}\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
    result = pattern.findall(path.read_text(encoding="utf-8"))
    return [textwrap.dedent(block) for block in result]


def run(code: str, **names: object) -> dict[str, Any]:
    """Run a block with names that the page presupposes; return all its names."""
    known: dict[str, Any] = {"__name__": "page", **names}
    exec(compile(code, "page", "exec"), known)
    return known


@pytest.fixture(autouse=True)
def folder(
    spark: SparkSession, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Work in an empty folder, which is the catalog's root; then have the other tests' catalog."""
    monkeypatch.chdir(tmp_path)
    register(spark, root=str(tmp_path))
    yield tmp_path
    register(spark, root=str(warehouse))


def test_the_readme(folder: Path) -> None:
    run_page(ROOT / "README.md")
    (code,) = [block for block in blocks(ROOT / "README.md", "py") if "session()" in block]
    names = run(code)
    assert names["table"].toDF().count() == 4
    indices = lancelake.dataset(str(folder / "photos.lance")).describe_indices()
    assert {column for index in indices for column in index.field_names} == {"caption", "embedding"}


def test_sessions_of_the_installation_page(spark: SparkSession) -> None:
    for code in blocks(DOCS / "install.md", "py"):
        assert run(code, spark=spark)["spark"] is not None


def test_parquet_files_are_appended(spark: SparkSession, folder: Path) -> None:
    rows = pa.table({"sensor": pa.array([1, 2], pa.int32()), "value": [20.5, 18.0]})
    (folder / "readings").mkdir()
    pq.write_table(rows, folder / "readings" / "a.parquet")
    (code,) = blocks(DOCS / "ingest.md", "py")
    run(code.replace('"readings', f'"{folder}/readings'), spark=spark)
    assert lancelake.dataset(str(folder / "readings.lance")).count_rows() == 2


def test_tables_in_an_object_store(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = [block for block in blocks(DOCS / "object-stores.md", "py") if "spark" in block]
    with s3_server() as server:
        for name, value in server.storage_options.items():
            monkeypatch.setenv(f"AWS_{name.removeprefix('aws_')}".upper(), value)
        place = f"s3://{server.new_bucket()}"
        lancelake.write_dataset(pa.table({"id": [1]}), f"{place}/photos.lance")
        code = code.replace("s3://bucket", place).replace("http://localhost:9000", server.endpoint)
        names = run(code, spark=spark, session=session)
        assert names["spark"].sql("SHOW TABLES IN lance").collect() == []


def test_the_merge_of_the_page_on_upserts(spark: SparkSession, folder: Path) -> None:
    cities = pa.table({"id": [1, 3], "city": ["Bergen", "Turku"], "visits": [4, 5]})
    lancelake.write_dataset(cities, str(folder / "db" / "cities.lance"))
    late = [(1, "Bergen", 0), (3, "Turku", 2), (9, "Oulu", 1)]
    spark.createDataFrame(late, "id long, city string, visits long").createOrReplaceTempView("late")
    (statement,) = blocks(DOCS / "upserts.md", "sql")
    spark.sql(statement)
    rows = spark.table("lance.db.cities").orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(3, "Turku", 7), (9, "Oulu", 1)]


def test_the_wal_of_the_page_on_the_mem_wal(
    spark: SparkSession, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    users = pa.table({"id": [7], "name": ["Ada"]}, schema)
    path = str(folder / "users.lance")
    lancelake.write_dataset(users, path, enable_stable_row_ids=True)
    (statements,) = blocks(DOCS / "memwal.md", "sql")
    first, *others = [part for part in statements.split(";") if part.strip()]
    spark.sql(first).collect()
    changed = pa.table(
        {"id": [7, 8], "name": ["Ada L.", "Bo"], "op": ["U", "U"], "changed_at": [1, 1]}
    )
    (folder / "changes").mkdir()
    pq.write_table(changed, folder / "changes" / "a.parquet")
    stream = spark.readStream.schema("id long, name string, op string, changed_at long")
    (code,) = blocks(DOCS / "memwal.md", "py")
    given = {"changes": stream.parquet(str(folder / "changes")), "path": path}
    query = run(code, **given, checkpoint=str(folder / "checkpoint"))["query"]
    query.processAllAvailable()
    query.stop()
    answers = [spark.sql(statement).collect() for statement in others]
    assert [row["name"] for row in answers[0]] == ["Ada L."]
    assert spark.table("lance.users").count() == 2
    # Which columns an option uses is found out by trying; users do not see what failed.
    assert "UNRESOLVED_COLUMN" not in capfd.readouterr().err
