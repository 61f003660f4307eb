"""Values of every type, from tables to Spark and from Spark to tables and back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lancelake
from tests.support.spark_compare import bag
from tests.support.spark_rows import rows

NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
SHOWN: dict[str, tuple[pa.Array, list[Any]]] = {
    "u8": (pa.array([255, None], pa.uint8()), [255, None]),
    "u32": (pa.array([2**32 - 1, None], pa.uint32()), [2**32 - 1, None]),
    "u64": (pa.array([2**64 - 1, None], pa.uint64()), [Decimal(2**64 - 1), None]),
    "f16": (pa.array([1.5, None], pa.float16()), [1.5, None]),
    "text": (pa.array(["x", None], pa.large_string()), ["x", None]),
    "bytes": (pa.array([b"ab", None], pa.binary(2)), [bytearray(b"ab"), None]),
    "vector": (pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)), [[1.0, 2.0], None]),
    "word": (pa.array(["a", None]).dictionary_encode(), ["a", None]),
    "ns": (
        pa.array([1_000_001, None], pa.timestamp("ns")),
        [dt.datetime(1970, 1, 1, 0, 0, 0, 1000), None],
    ),
    "lapse": (
        pa.array([dt.timedelta(hours=5), None], pa.duration("us")),
        [dt.timedelta(hours=5), None],
    ),
    "day": (pa.array([dt.date(2024, 2, 29), None], pa.date64()), [dt.date(2024, 2, 29), None]),
}


def test_types_that_spark_lacks_are_read(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({name: array for name, (array, _) in SHOWN.items()})
    lancelake.write_dataset(table, tmp_path / "t.lance")
    found = spark.read.format("lance").load(str(tmp_path / "t.lance")).collect()
    by_column = {name: [row[name] for row in found] for name in SHOWN}
    assert by_column == {name: values for name, (_, values) in SHOWN.items()}


def test_rows_that_spark_wrote_come_back(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(rows(60))
    path = str(tmp_path / "t.lance")
    frame.write.format("lance").mode("append").save(path)
    back = spark.read.format("lance").load(path)
    assert bag(back) == bag(frame)
    assert [f.dataType for f in back.schema.fields] == [f.dataType for f in frame.schema.fields]


@pytest.mark.parametrize(
    ("expression", "kind"),
    [("parse_json('1')", "variant"), ("INTERVAL '1' MONTH", "interval month")],
)
def test_types_that_tables_lack_are_refused_by_name(
    spark: SparkSession, tmp_path: Path, expression: str, kind: str
) -> None:
    frame = spark.sql(f"SELECT 1 AS id, {expression} AS odd")
    with pytest.raises(Exception, match=f"column odd has type {kind}"):
        frame.write.format("lance").mode("append").save(str(tmp_path / "t.lance"))
