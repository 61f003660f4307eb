"""Row commands on tables with many columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.clientserver import JavaClient
from pyspark.sql import SparkSession

import lancelake

FEW, MANY = 4, 60


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the calls from Python to Java."""
    calls = [0]
    original = JavaClient.send_command

    def send(self: Any, command: str, *args: Any, **kwargs: Any) -> Any:
        # Requests to release an object are sent whenever Python collects it.
        calls[0] += not command.startswith("m\n")
        return original(self, command, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(JavaClient, "send_command", send)
        yield calls


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    """Create a narrow and a wide table of four rows, and a source for each."""
    spark.sql("CREATE NAMESPACE lance.wide")
    for width in (FEW, MANY):
        columns = ", ".join(f"id + {i} AS c{i}" for i in range(width))
        spark.sql(f"CREATE TABLE lance.wide.t{width} AS SELECT id, {columns} FROM range(4)")
        source = spark.sql(f"SELECT id + 3 AS id, {columns} FROM range(2)")
        source.createOrReplaceTempView(f"wide_source_{width}")
    yield
    spark.sql("DROP NAMESPACE lance.wide CASCADE")


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lance.wide.t{n} SET c1 = c2 WHERE id = 1",
        (
            "MERGE INTO lance.wide.t{n} t USING wide_source_{n} s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ),
    ],
    ids=["update", "merge"],
)
def test_calls_to_java_do_not_grow_with_the_columns(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    counts: dict[int, int] = {}
    spark.sql(statement.format(n=FEW))
    for width in (FEW, MANY):
        with counted(monkeypatch) as calls:
            spark.sql(statement.format(n=width))
        counts[width] = calls[0]
    assert counts[MANY] < counts[FEW] + MANY


@pytest.mark.usefixtures("tables")
def test_every_column_of_a_wide_row_is_kept_or_assigned(spark: SparkSession) -> None:
    spark.sql(f"UPDATE lance.wide.t{MANY} SET c7 = 100 + c8 WHERE id = 2")
    (row,) = spark.sql(f"SELECT * FROM lance.wide.t{MANY} WHERE id = 2").collect()
    assert list(row) == [2, *(110 if i == 7 else 2 + i for i in range(MANY))]


CHANGES = {
    "UPDATE {t} SET a = 10 WHERE id = 2": [1, 10],
    "MERGE INTO {t} t USING (SELECT 2L AS id) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET a = 10": [1, 10],
    "MERGE INTO {t} t USING (SELECT explode(array(2L, 3L)) AS id) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET a = 10 "
    "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, 11)": [1, 10, 11],
}


@pytest.mark.parametrize(("statement", "expected"), CHANGES.items(), ids=range(len(CHANGES)))
def test_columns_that_a_command_does_not_assign_stay_as_they_are_stored(
    spark: SparkSession, tmp_path: Path, statement: str, expected: list[int]
) -> None:
    fine = pa.array([1_000_000_001, 2_000_000_002], pa.timestamp("ns"))
    table = pa.table({"id": [1, 2], "a": [1, 2], "fine": fine})
    lancelake.write_dataset(table, tmp_path / "t.lance")
    spark.sql(statement.format(t=f"lance.`{tmp_path / 't.lance'}`"))
    stored = lancelake.LanceDataset(tmp_path / "t.lance").to_table().sort_by("id")
    assert stored.column("a").to_pylist() == expected
    assert (
        stored.column("fine").cast(pa.int64()).to_pylist()[:2] == fine.cast(pa.int64()).to_pylist()
    )
