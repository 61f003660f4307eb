"""Values of every type, from tables to Spark and from Spark to tables and back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lancelake
from lancelake.maintenance.check.run import check
from lancelake.spark import LanceTable
from lancelake.spark.values.spark_types import nullable_schema
from lancelake.storage.location import Location
from tests.spark.corpus.data import rows as every_type
from tests.spark.corpus.tables import frame
from tests.support.official import RELEASES, Official, OfficialPool, is_installed
from tests.support.spark_compare import bag
from tests.support.spark_rows import rows

TIMES = "spark.sql.timeType.enabled"
GRID = pa.list_(pa.list_(pa.float32(), 1), 2)
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
    "nothing": (pa.nulls(2), [None, None]),
    "large": (pa.array([[1], None], pa.large_list(pa.int64())), [[1], None]),
    "grid": (pa.array([[[1.0], [2.0]], None], GRID), [[[1.0], [2.0]], None]),
    "number": (pa.array([7, None]).dictionary_encode(), [7, None]),
    "seconds": (
        pa.array([1, None], pa.timestamp("s")),
        [dt.datetime(1970, 1, 1, 0, 0, 1), None],
    ),
    "short_lapse": (
        pa.array([1500, None], pa.duration("ns")),
        [dt.timedelta(microseconds=1), None],
    ),
    "wide": (pa.array([Decimal("1.50"), None], pa.decimal256(20, 2)), [Decimal("1.50"), None]),
    "uuid": (pa.array([b"0" * 16, None], pa.uuid()), [bytearray(b"0" * 16), None]),
    "maps": (
        pa.array([[[("a", 1)]], None], pa.list_(pa.map_(pa.string(), pa.int32()))),
        [[{"a": 1}], None],
    ),
    "member": (
        pa.StructArray.from_arrays([pa.array(["a", None]).dictionary_encode()], ["d"]),
        [("a",), (None,)],
    ),
}


def test_types_that_spark_lacks_are_read(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({name: array for name, (array, _) in SHOWN.items()})
    lancelake.write_dataset(table, tmp_path / "t.lance", data_storage_version="2.2")
    rows = spark.read.format("lance").load(str(tmp_path / "t.lance")).collect()
    by_column = {name: [row[name] for row in rows] for name in SHOWN}
    assert by_column == {name: values for name, (_, values) in SHOWN.items()}


def test_types_that_spark_lacks_are_read_as_official_lance_wrote_them(
    spark: SparkSession, tmp_path: Path, official_14: Official
) -> None:
    table = pa.table({name: array for name, (array, _) in SHOWN.items()})
    official_14.write(tmp_path / "t.lance", table, data_storage_version="2.2")
    rows = spark.read.format("lance").load(str(tmp_path / "t.lance")).collect()
    by_column = {name: [row[name] for row in rows] for name in SHOWN}
    assert by_column == {name: values for name, (_, values) in SHOWN.items()}


def test_a_column_that_spark_cannot_show_does_not_hide_the_others(
    spark: SparkSession, tmp_path: Path, official_14: Official
) -> None:
    odd = {
        "big": pa.array([Decimal("1.50")], pa.decimal256(50, 2)),
        "hundreds": pa.array([Decimal(100)], pa.decimal128(10, -2)),
    }
    path = tmp_path / "t.lance"
    official_14.write(path, pa.table({"id": [1], **odd, "s": ["a"]}))
    with pytest.warns(UserWarning, match="which Spark does not support") as said:
        frame = spark.read.format("lance").load(str(path))
    assert frame.collect() == [(1, "a")]
    assert [str(w.message).split()[1] for w in said] == list(odd)


@pytest.fixture
def with_times(spark: SparkSession) -> Iterator[SparkSession]:
    """Return a session that knows the type TIME."""
    before = spark.conf.get(TIMES)
    spark.conf.set(TIMES, "true")
    yield spark
    spark.conf.set(TIMES, str(before))


def test_every_type_that_spark_wrote_is_read_by_every_library(
    with_times: SparkSession, tmp_path: Path, officials: OfficialPool
) -> None:
    path, table = tmp_path / "t.lance", every_type(80)
    made = frame(with_times, table)
    made.write.format("lance").save(str(path))
    back = with_times.read.format("lance").load(str(path))
    assert back.schema == nullable_schema(made.schema)
    assert bag(back) == bag(made)
    expected = _as_rows(table)
    assert _as_rows(lancelake.LanceDataset(path).to_table()) == expected
    for release in filter(is_installed, RELEASES):
        official = officials(release)
        official.run(path, "lance.dataset(uri).validate(); result = None")
        assert _as_rows(official.read(path)) == expected
    assert list(check(Location.parse(path), data=True)) == []


def _as_rows(table: pa.Table) -> list[str]:
    """Return rows as text, in which numbers that are no numbers are equal."""
    return sorted(repr(row) for row in table.to_pylist())


def test_types_with_less_than_others_come_back(with_times: SparkSession, tmp_path: Path) -> None:
    made = with_times.sql(
        "SELECT INTERVAL '3' DAY AS d, INTERVAL '1:02' HOUR TO MINUTE AS h, "
        "CAST('01:02:03' AS TIME(0)) AS t, named_struct('t', CAST('01:02:03' AS TIME(3))) AS s"
    )
    made.write.format("lance").save(str(tmp_path / "t.lance"))
    back = with_times.read.format("lance").load(str(tmp_path / "t.lance"))
    assert [f.dataType for f in back.schema] == [f.dataType for f in made.schema]
    assert back.collect() == made.collect()


def test_bounded_text_is_padded_and_checked_as_spark_does(spark: SparkSession) -> None:
    name = "lance.bounded.t"
    spark.sql(f"CREATE TABLE {name} (c CHAR(5), v VARCHAR(3))")
    spark.sql(f"INSERT INTO {name} VALUES ('ab', 'ab'), (NULL, ''), ('🦀', 'é')")
    rows = spark.sql(f"SELECT c, v FROM {name} WHERE c = 'ab' OR v = 'é' ORDER BY v").collect()
    assert rows == [("ab   ", "ab"), ("🦀    ", "é")]
    with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
        spark.sql(f"INSERT INTO {name} VALUES ('ab', 'abcd')")
    spark.sql("DROP NAMESPACE lance.bounded CASCADE")


def test_rows_that_spark_wrote_come_back(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(rows(60))
    path = str(tmp_path / "t.lance")
    frame.write.format("lance").mode("append").save(path)
    back = spark.read.format("lance").load(path)
    assert bag(back) == bag(frame)
    assert [f.dataType for f in back.schema.fields] == [f.dataType for f in frame.schema.fields]


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("parse_json('1')", "variant"),
        ("INTERVAL '1' MONTH", "interval month"),
        ("'a' COLLATE UTF8_LCASE", "string collate UTF8_LCASE"),
    ],
)
def test_types_that_tables_lack_are_refused_by_name(
    spark: SparkSession, tmp_path: Path, expression: str, kind: str
) -> None:
    frame = spark.sql(f"SELECT 1 AS id, {expression} AS odd")
    with pytest.raises(Exception, match=f"column odd has type {kind}"):
        frame.write.format("lance").mode("append").save(str(tmp_path / "t.lance"))


def test_updated_rows_keep_columns_that_spark_does_not_support(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "t.lance"
    big = [Decimal(f"{n}.50") for n in range(4)]
    rows = {"id": pa.array(range(4)), "big": pa.array(big, pa.decimal256(50, 2))}
    lancelake.write_dataset(pa.table(rows), str(place))
    with pytest.warns(UserWarning, match="big"):
        table = LanceTable.forPath(spark, str(place))
        table.update("id = 1", {"id": "11"})
        source = spark.createDataFrame([(2, 12), (9, 19)], "key long, new long")
        merge = table.merge(source, "target.id = source.key")
        merge.whenMatchedUpdate(set={"id": "new"}).whenNotMatchedInsert(
            values={"id": "new"}
        ).execute()
    result = lancelake.LanceDataset(str(place)).to_table().to_pylist()
    assert {row["id"]: row["big"] for row in result} == {
        0: big[0],
        11: big[1],
        12: big[2],
        3: big[3],
        19: None,
    }
