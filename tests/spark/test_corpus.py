"""Queries made by chance are answered over Lance tables as over the same rows in Parquet."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.corpus.answers import answer, difference
from tests.spark.corpus.on_connect import RELEASE
from tests.spark.corpus.queries import Query, query
from tests.spark.corpus.tables import (
    COUNT,
    SETTINGS,
    Names,
    by_path,
    in_parquet,
    written_by_spark,
    written_officially,
)
from tests.support.official import Official, interpreter, is_installed

SEEDS = range(2000, 2080)
CONNECT_SEEDS = (3000, 3025)
ROOT = Path(__file__).parents[2]
TOGETHER = 4

Tables = tuple[Names, list[Names]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the tables."""
    return tmp_path_factory.mktemp("corpus")


@pytest.fixture(scope="module")
def tables(spark: SparkSession, folder: Path, official_14: Official) -> Iterator[Tables]:
    """Return the tables in Parquet, and the same rows in Lance: by Spark and by official Lance."""
    before = {key: spark.conf.get(key) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    expected = in_parquet(spark, folder)
    values = [
        written_by_spark(spark, folder),
        written_officially(spark, folder, official_14),
        by_path(folder),
    ]
    yield expected, values
    for key, old in before.items():
        spark.conf.set(key, str(old))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_query_is_answered_as_over_parquet(
    spark: SparkSession, tables: Tables, seed: int
) -> None:
    expected, found = tables
    asked = query(seed)
    assert difference(spark, asked, expected, found[seed % len(found)]) is None, asked.sql


def test_a_seed_makes_one_query() -> None:
    assert [query(seed) for seed in SEEDS] == [query(seed) for seed in SEEDS]
    assert len({query(seed).sql for seed in SEEDS}) == len(SEEDS)


def test_metadata_columns_are_those_of_official_lance(
    spark: SparkSession, tables: Tables, folder: Path, official_14: Official
) -> None:
    path = folder / "official.lance"
    read = official_14.read(path, columns=["id"], with_row_id=True, with_row_address=True)
    names = ["id", "_rowid", "_rowaddr"]
    shown = spark.read.format("lance").load(str(path)).select(*names).toArrow()
    wanted = read.select(names).cast(shown.schema)
    assert shown.sort_by("id").equals(wanted.sort_by("id"))


@pytest.mark.parametrize("kind", ["m", "mm", "sm", "st", "ps", "xx"])
def test_nested_columns_come_in_many_small_batches(
    spark: SparkSession, tables: Tables, folder: Path, kind: str
) -> None:
    expected, _ = tables
    small = spark.read.format("lance").option("batchRows", TOGETHER)
    small.load(str(folder / "spark.lance")).createOrReplaceTempView("small_batches")
    names = Names(t="small_batches", u=expected.u, old=expected.old)
    for text in (f"SELECT id, {kind} FROM {{t}}", f"SELECT {kind} FROM {{t}} WHERE id % 9 = 1"):
        assert difference(spark, Query(sql=text), expected, names) is None


def test_the_comparison_reports_a_missing_row(spark: SparkSession, tables: Tables) -> None:
    expected, (found, *_) = tables
    spark.table(found.t).where("id <> 17").createOrReplaceTempView("one_less")
    less = Names(t="one_less", u=found.u, old=found.old)
    assert difference(spark, Query(sql="SELECT id, st FROM {t}"), expected, less) is not None
    assert len(answer(spark, Query(sql="SELECT id FROM {t}"), less)) == COUNT - 1


@pytest.mark.skipif(not is_installed(RELEASE), reason=f"needs {interpreter(RELEASE)}")
def test_queries_through_connect_are_answered_as_over_parquet(tmp_path: Path) -> None:
    first, last = (str(seed) for seed in CONNECT_SEEDS)
    command = [sys.executable, "-m", "tests.spark.corpus.on_connect", str(tmp_path), first, last]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=900, cwd=ROOT
    )
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert said == [{"asked": CONNECT_SEEDS[1] - CONNECT_SEEDS[0]}], done.stderr[-2000:]
