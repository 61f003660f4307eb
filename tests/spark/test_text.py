"""Strings that are not UTF-8: replaced by a write that asks for it, and by a repair."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lancelake
from lancelake.spark import LanceTable
from tests.support.raw_text import binaries, with_text

INVALID = "SELECT CAST(X'FF00' AS STRING) s UNION ALL SELECT 'ok'"


def texts(path: Path) -> list[str]:
    return sorted(lancelake.LanceDataset(path).to_table()["s"].to_pylist())


def damaged(root: Path, name: str) -> Path:
    """Return a table with a string that is not UTF-8."""
    binary = root / f"{name}-binary.lance"
    lancelake.write_dataset(pa.table({"s": binaries(b"ok", b"\xff\x00")}), binary)
    return with_text(binary, root / f"{name}.lance")


def test_a_write_replaces_invalid_bytes_when_asked(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    spark.sql(INVALID).write.format("lance").option("invalidUtf8", "replace").save(str(path))
    assert texts(path) == ["ok", "\ufffd\x00"]


def test_a_stream_does_not_write_invalid_bytes(spark: SparkSession, tmp_path: Path) -> None:
    lancelake.write_dataset(pa.table({"s": ["ok"]}), tmp_path / "source.lance")
    source = spark.readStream.format("lance").load(str(tmp_path / "source.lance"))
    sink = source.selectExpr("CAST(X'FF00' AS STRING) AS s").writeStream.format("lance")
    sink = sink.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = sink.trigger(availableNow=True).start(str(tmp_path / "t.lance"))
    with pytest.raises(Exception, match="not UTF-8"):
        query.awaitTermination()


def test_a_repair_replaces_invalid_bytes_when_asked(spark: SparkSession, tmp_path: Path) -> None:
    path = damaged(tmp_path, "t")
    table = LanceTable.forPath(spark, str(path))
    assert [row.code for row in table.check(data=True).collect()] == ["text-not-utf8"]
    done = table.repair(replaceInvalidUtf8=True).collect()
    assert [row.action for row in done] == ["repaired"]
    assert texts(path) == ["ok", "\ufffd\x00"]


def test_the_repair_procedure_replaces_invalid_bytes_when_asked(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = damaged(tmp_path, "t")
    call = f"CALL lance.system.repair('{path}', data => true"
    (left,) = spark.sql(f"{call})").collect()
    assert "--replace-invalid-utf8" in left.advice
    assert spark.sql(f"{call}, replace_invalid_utf8 => true)").count() == 1
    assert texts(path) == ["ok", "\ufffd\x00"]
