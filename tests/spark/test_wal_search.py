"""Searches from Spark with rows of the MemWAL, compared with those of the merged table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lancelake.pylance as lance
from lancelake.errors import LanceTableError
from lancelake.spark import LanceTable
from tests.support.memwal_tables import KEY

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata=KEY),
        pa.field("text", pa.utf8()),
        pa.field("vector", pa.list_(pa.float32(), 2)),
    ]
)
QUERIES = [[3.0, 0.0], [4.2, 0.0], [100.0, 0.0], [17.9, 0.0]]


def rows(*given: tuple[int, str, float]) -> pa.Table:
    vectors = pa.array([[place, 0.0] for *_, place in given], SCHEMA.field("vector").type)
    return pa.table([[g[0] for g in given], [g[1] for g in given], vectors], schema=SCHEMA)


@pytest.fixture(scope="module")
def tables(
    spark: SparkSession, warehouse: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[LanceTable, LanceTable]:
    """Return a table with rows in a generation and in the log, and the same one merged."""
    values = []
    for name in ("fresh", "merged"):
        uri = warehouse / f"wal_search_{name}.lance"
        first = rows(*((n, f"word base{n}", float(n)) for n in range(20)))
        ds = lance.write_dataset(first, uri, max_rows_per_file=7)
        ds.create_scalar_index("text", "INVERTED")
        ds.wal.initialize(buckets=2)
        with ds.wal.writer() as w:
            w.put(rows((3, "other", 100.0), (50, "word flushed", 3.4)))
        last = ds.wal.writer()
        last.put(rows((51, "word tail", 3.1)))
        last.delete([4])
        last.close(flush=False)
        if name == "merged":
            ds.wal.merge(flush=True)
        values.append(LanceTable.forPath(spark, str(uri)))
    return values[0], values[1]


def listed(frame: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in frame.select(*columns).collect()]


def test_single_searches_have_the_newest_rows(tables: tuple[LanceTable, LanceTable]) -> None:
    fresh, merged = tables
    near = fresh.search([3.0, 0.0], k=4, freshness="durable")
    assert listed(near, "id", "_distance") == listed(
        merged.search([3.0, 0.0], k=4), "id", "_distance"
    )
    texts = fresh.textSearch("word", k=30, freshness="durable")
    assert {row[0] for row in listed(texts, "id")} == {
        row[0] for row in listed(merged.textSearch("word", k=30), "id")
    }
    both = fresh.hybridSearch("tail", [3.0, 0.0], k=1, freshness="durable")
    assert listed(both, "id") == listed(merged.hybridSearch("tail", [3.0, 0.0], k=1), "id")
    flushed = fresh.search([3.0, 0.0], k=2, freshness="flushed")
    assert listed(flushed, "id") == [(50,), (2,)]
    assert listed(fresh.search([3.0, 0.0], k=1), "id") == [(3,)]


def test_batches_and_joins_have_the_newest_rows(
    spark: SparkSession, tables: tuple[LanceTable, LanceTable]
) -> None:
    fresh, merged = tables
    queries = spark.createDataFrame(
        [(n, q) for n, q in enumerate(QUERIES)], "n int, q array<float>"
    )
    columns = ("query_index", "id", "_distance")
    nearest = fresh.search(queries, k=3, freshness="durable", columns=["id"])
    assert sorted(listed(nearest, *columns)) == sorted(
        listed(merged.search(queries, k=3, columns=["id"]), *columns)
    )
    nearest = fresh.knnJoin(queries, k=3, freshness="durable", filter="id != 2", columns=["id"])
    expected = merged.knnJoin(queries, k=3, filter="id != 2", columns=["id"])
    assert sorted(listed(nearest, "n", "id")) == sorted(listed(expected, "n", "id"))


def test_procedures_take_a_freshness(
    spark: SparkSession, tables: tuple[LanceTable, LanceTable]
) -> None:
    call = "CALL lance.system.vector_search('wal_search_fresh', array(3.0, 0.0), k => 2"
    assert [row.id for row in spark.sql(f"{call}, freshness => 'durable')").collect()] == [51, 50]
    with pytest.raises(LanceTableError, match="invalid freshness"):
        tables[0].search([3.0, 0.0], freshness="newest")
    with pytest.raises(LanceTableError, match="have no row id"):
        tables[0].search([3.0, 0.0], freshness="durable", withRowId=True)
