"""Indices built, listed, refreshed and dropped from Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lancelake.pylance as lance
from lancelake.errors import LanceTableError
from lancelake.spark import LanceTable
from lancelake.spark.jobs import index_build
from tests.support.official import Official
from tests.support.scalar_index_tables import FILTERS, IndexedTable, rows, scan_differences

NAME = "lance.indexed.t"
KINDS = {"BTREE": "i", "BITMAP": "k", "LABEL_LIST": "l"}
ASK = """
ds = lance.dataset(uri)
result = []
for text in texts:
    scan = ds.to_table(filter=text, columns=["n"], use_scalar_index=False)["n"].to_pylist()
    found = ds.to_table(filter=text, columns=["n"])["n"].to_pylist()
    plan = ds.scanner(filter=text, columns=["n"]).explain_plan()
    if sorted(scan) != sorted(found) or has_index != ("ScalarIndexQuery" in plan):
        result.append(text)
"""


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def uri(request: pytest.FixtureRequest, tmp_table: str) -> str:
    """Return a table of six fragments with deleted rows."""
    lance.write_dataset(
        rows(3000),
        tmp_table,
        max_rows_per_file=500,
        enable_stable_row_ids=request.param,
        data_storage_version="2.0",
    )
    lance.dataset(tmp_table).delete("n % 7 = 3")
    return tmp_table


@pytest.fixture
def on_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small indices be built on executors, too."""
    monkeypatch.setattr(index_build, "EMBEDDED_ROWS", 0)


@pytest.fixture
def named(spark: SparkSession) -> Iterator[LanceTable]:
    """Return a table of the catalog."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.indexed")
    spark.sql(f"CREATE TABLE {NAME} (id bigint, day int)")
    spark.range(0, 100, 1, 1).selectExpr("id", "int(id % 10) day").writeTo(NAME).append()
    yield LanceTable.forName(spark, NAME)
    spark.sql(f"DROP TABLE {NAME}")


@pytest.mark.usefixtures("on_executors")
@pytest.mark.parametrize("column", ["i", "f", "s", "d", "b"])
def test_a_btree_of_ranges_answers_as_a_scan_does(
    spark: SparkSession, uri: str, column: str, official: Official
) -> None:
    (done,) = LanceTable.forPath(spark, uri).createIndex(column).collect()
    assert (done.rows_indexed, done.rows_not_indexed) == (lance.dataset(uri).count_rows(), 0)
    files = {path.name for path in Path(uri, "_indices").glob("*/*")}
    assert "page_lookup.lance" in files and "page_data.lance" not in files
    indexed = IndexedTable(uri)
    assert [w for text in FILTERS[column] if (w := indexed.difference(text, column))] == []
    texts = [text for text in FILTERS[column] if "NaN" not in text]
    # Release 4.0.2 does not read a BTREE of row addresses in a table with stable row ids.
    is_stable = lance.dataset(uri).has_stable_row_ids
    has_index = not is_stable or official.release != "4.0.2"
    assert official.run(uri, ASK, texts=texts, has_index=has_index) == []


@pytest.mark.usefixtures("on_executors")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_built_on_executors(spark: SparkSession, uri: str, kind: str) -> None:
    column = KINDS[kind]
    LanceTable.forPath(spark, uri).createIndex(column, kind)
    indexed = IndexedTable(uri)
    assert [w for text in FILTERS[column] if (w := indexed.difference(text, column))] == []


@pytest.mark.usefixtures("on_executors")
@pytest.mark.parametrize(
    ("kind", "column"), [("ZONEMAP", "i"), ("BLOOMFILTER", "i"), ("NGRAM", "s")]
)
def test_zones_and_trigrams_built_on_executors_are_those_built_here(
    spark: SparkSession, tmp_table: str, kind: str, column: str
) -> None:
    ds = lance.write_dataset(rows(3000), tmp_table, max_rows_per_file=500)
    LanceTable.forPath(spark, tmp_table).createIndex(column, kind, "theirs")
    ds = lance.dataset(tmp_table)
    ds.create_scalar_index(column, kind, "ours")
    numbers = [ds.index_statistics(name)["segments"] for name in ("theirs", "ours")]
    assert numbers[0] == numbers[1]


@pytest.mark.usefixtures("on_executors")
@pytest.mark.parametrize(
    "values",
    [
        pa.array([None] * 50, pa.int64()),
        pa.array([2**64 - 1, 0, None, 5] * 10, pa.uint64()),
        pa.array(["1.5", "-2.25", None] * 10).cast(pa.decimal128(10, 2)),
        pa.array([b"", b"\xff", None, b"a"] * 10, pa.binary()),
    ],
    ids=["nulls", "uint64", "decimals", "bytes"],
)
def test_values_of_every_sort_come_in_order(
    spark: SparkSession, tmp_table: str, values: pa.Array
) -> None:
    table = pa.table({"n": range(len(values)), "v": values})
    lance.write_dataset(table, tmp_table, max_rows_per_file=10)
    LanceTable.forPath(spark, tmp_table).createIndex("v")
    indexed = IndexedTable(tmp_table)
    assert indexed.difference("v is null", "v") is None
    assert indexed.difference("v is not null", "v") is None
    lance.dataset(tmp_table).validate()


def test_indices_are_listed_refreshed_and_dropped(named: LanceTable, spark: SparkSession) -> None:
    named.createIndex("id", name="by_id")
    spark.range(100, 150, 1, 1).selectExpr("id", "1 day").writeTo(NAME).append()
    (row,) = named.indexes().collect()
    assert (row.name, row.type, row.rows_indexed, row.rows_not_indexed) == (
        "by_id",
        "BTree",
        100,
        50,
    )
    (done,) = named.refreshIndex("by_id").collect()
    assert (done.rows_indexed, done.rows_not_indexed) == (150, 0)
    named.dropIndex("by_id")
    assert named.indexes().collect() == []


def test_a_refresh_names_the_index_that_it_cannot_read(
    named: LanceTable, spark: SparkSession
) -> None:
    for column in ("id", "day"):
        named.createIndex(column)
    table = lance.dataset(named.detail().collect()[0].location)
    (damaged,) = (index for index in table.describe_indices() if index.name == "id_idx")
    for file in Path(table.uri, "_indices", damaged.segments[0].uuid).iterdir():
        file.write_bytes(b"damaged")
    spark.range(100, 150, 1, 1).selectExpr("id", "1 day").writeTo(NAME).append()
    with pytest.raises(LanceTableError, match="id_idx"):
        named.refreshIndex()
    frame = spark.sql(f"SELECT name, rows_not_indexed FROM {NAME}.indices ORDER BY name")
    assert [tuple(row) for row in frame.collect()] == [("day_idx", 0), ("id_idx", 50)]


def test_procedures_create_refresh_and_drop(named: LanceTable, spark: SparkSession) -> None:
    call = "CALL lance.system."
    (made,) = spark.sql(f"{call}create_index('indexed.t', 'day', kind => 'BITMAP')").collect()
    assert (made["name"], made["kind"], made["rows_indexed"]) == ("day_idx", "Bitmap", 100)
    spark.range(100, 150, 1, 1).selectExpr("id", "1 day").writeTo(NAME).append()
    (row,) = spark.sql(f"SELECT name, rows_not_indexed FROM {NAME}.indices").collect()
    assert tuple(row) == ("day_idx", 50)
    (done,) = spark.sql(f"{call}refresh_index('indexed.t')").collect()
    assert done["rows_not_indexed"] == 0
    spark.sql(f"{call}drop_index('indexed.t', 'day_idx')").collect()
    assert named.indexes().collect() == []


def test_a_large_delta_becomes_a_segment_that_executors_build(
    spark: SparkSession, tmp_table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance.write_dataset(rows(3000), tmp_table, max_rows_per_file=500)
    table = LanceTable.forPath(spark, tmp_table)
    table.createIndex("i")
    lance.dataset(tmp_table).insert(rows(600, seed=1))
    monkeypatch.setattr(index_build, "EMBEDDED_ROWS", 500)
    (done,) = table.refreshIndex("i_idx").collect()
    assert (done.rows_indexed, done.rows_not_indexed) == (3600, 0)
    segments = lance.dataset(tmp_table).describe_indices()[0].segments
    assert [segment.fragment_ids for segment in segments] == [set(range(6)), {6}]
    # The first was built on the driver, as one file; the second by executors, range by range.
    files = [path.name for path in Path(tmp_table, "_indices").glob("*/*page_data.lance")]
    assert sorted(name.startswith("part_") for name in files) == [False, True, True]
    assert scan_differences(tmp_table, "i") == []


def test_optimize_leaves_a_large_segment_as_it_is(
    spark: SparkSession, tmp_table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance.write_dataset(rows(3000), tmp_table, max_rows_per_file=500)
    table = LanceTable.forPath(spark, tmp_table)
    table.createIndex("i")
    lance.dataset(tmp_table).insert(rows(10, seed=1))
    lance.dataset(tmp_table).update_config({"lancelake.optimize.compact": "false"})
    monkeypatch.setattr(index_build, "EMBEDDED_ROWS", 500)
    table.optimizeAll()
    segments = lance.dataset(tmp_table).describe_indices()[0].segments
    assert [segment.fragment_ids for segment in segments] == [set(range(6)), {6}]
