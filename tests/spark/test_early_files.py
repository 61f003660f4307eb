"""Tables of release 0.13, whose columns are found by their physical index, read and changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lancelake.spark import LanceTable
from tests.golden.test_early_20_files import TABLE, VALUES
from tests.support.s3_server import S3Server, s3_server


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@dataclass(frozen=True, slots=True)
class Early:
    """A copy of the table: one version with four rows, one without row 2."""

    spark: SparkSession
    uri: str
    options: dict[str, str]

    def read(self, **options: Any) -> DataFrame:
        reader = self.spark.read.format("lance").options(**self.options, **options)
        return reader.load(self.uri)


@pytest.fixture(params=["disk", "s3"])
def early(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Early:
    if request.param == "disk":
        return Early(spark, str(shutil.copytree(TABLE, tmp_path / "t.lance")), {})
    server: S3Server = request.getfixturevalue("s3")
    uri = f"s3://{server.new_bucket()}/t.lance"
    server.upload(TABLE, uri)
    options = {f"storage.{name}": value for name, value in server.storage_options.items()}
    return Early(spark, uri, options)


def values(frame: DataFrame, name: str) -> list[object]:
    """Return a column in the order of the ids."""
    rows = [row.asDict(recursive=True) for row in frame.sort("id").collect()]
    column = [row[name] for row in rows]
    return [bytes(value) if isinstance(value, bytearray) else value for value in column]


def test_all_columns_are_read(early: Early) -> None:
    frame = early.read(version=1)
    assert {name: values(frame, name) for name in VALUES} == VALUES


@pytest.mark.parametrize("name", ["n", "t", "b"])
def test_a_column_is_read_without_its_neighbours(early: Early, name: str) -> None:
    frame = early.read(version=1)
    assert values(frame.select("id", name), name) == VALUES[name]
    assert values(frame.where("n > 10").select("id", name), name) == VALUES[name][1:]


def test_changes_keep_the_values_of_other_columns(early: Early) -> None:
    LanceTable.forPath(early.spark, early.uri, **early.options).update("id = 3", {"t": "'new'"})
    frame = early.read()
    left = {name: [v for i, v in enumerate(c) if i != 1] for name, c in VALUES.items()}
    assert {name: values(frame, name) for name in VALUES} == left | {"t": ["p", "new", "s"]}
