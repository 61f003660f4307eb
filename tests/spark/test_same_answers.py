"""Spark over a Lance table answers as Spark over the same rows in Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession, functions

import lancelake
from tests.support.spark_compare import bag
from tests.support.spark_rows import rows

COUNT = 400
FILTERS = [
    "i = 7",
    "i <> 7",
    "i < 0",
    "i >= 2147483647",
    "7 = i",
    "i <=> NULL",
    "i <=> 7",
    "NOT (i = 7)",
    "i IN (1, 7, 42)",
    "i NOT IN (1, 7)",
    "i IN (1, NULL)",
    "NOT (i IN (1, NULL))",
    "l > 1099511627776",
    "l = -1099511627776 OR i = 1",
    "l = i",
    "k < -3 AND h > 20",
    "f = 0",
    "f > 0",
    "f >= 0",
    "f < 0",
    "f <= 0.1",
    "f = cast(0.1 as float)",
    "d = 0.0",
    "d = -0.0",
    "d <> 0.0",
    "d < 0.0",
    "d <= -0.0",
    "d > 0.0",
    "d >= 0.0",
    "d = double('NaN')",
    "d > 1e10",
    "d < 1e10",
    "d = double('Infinity')",
    "NOT (d > 1.5)",
    "NOT (d < 1.5)",
    "isnan(d)",
    "d IN (0.0, 1.5)",
    "d <=> 0.0",
    "s = 'abc'",
    "s = ''",
    "s > 'a'",
    "s = 'it''s'",
    "s = 'back\\\\s'",
    "s LIKE 'a%'",
    "s LIKE '%c'",
    "s LIKE '%b%'",
    "s LIKE 'a\\\\%c'",
    "s LIKE 'a_c'",
    "NOT s LIKE 'a%'",
    "s IN ('abc', 'zürich', 'nowhere')",
    "upper(s) = 'ABC'",
    "length(s) > 2",
    "s IS NULL AND i IS NOT NULL",
    "n = 12345678.91",
    "n > 0",
    "n < -0.005",
    "n IN (0, 99999999.99)",
    "n + 1 > 5",
    "day = DATE'2024-02-29'",
    "day < DATE'1970-01-01'",
    "year(day) = 2024",
    "t = TIMESTAMP'2024-02-29 12:30:15.123456'",
    "t < TIMESTAMP'1970-01-01 00:00:00'",
    "w >= TIMESTAMP_NTZ'2024-02-29 00:00:00'",
    "date(t) = DATE'2024-02-29'",
    "b = X'FF00'",
    "b > X'00'",
    "b IS NULL",
    "ok",
    "NOT ok",
    "ok IS NULL",
    "ok = true OR i = 7",
    "ok <=> NULL",
    "st IS NULL",
    "st IS NOT NULL",
    "st.x > 300",
    "st.x IS NULL",
    "st.y LIKE 'z%'",
    "st.z IS NULL",
    "st.z.q = 3",
    "st.z.q IS NOT NULL AND st.x < 50",
    "size(xs) = 3",
    "array_contains(xs, 2)",
    "xs IS NULL",
    "get(ps, 0).u = 0",
    "m['key1'] = 1",
    "m IS NULL",
    "i = 7 AND (s = 'abc' OR d > 1)",
    "(i = 7 OR upper(s) = 'ABC') AND id < 200",
    "1 = 0",
    "id < 0",
    "abs(h) = 1",
    "h + 1 = 8",
    "CASE WHEN i = 7 THEN true ELSE false END",
    "coalesce(i, 0) = 0",
    "ok <=> (i = 7)",
    "(i = 7 OR s = 'abc') <=> (ok AND NULL)",
    "ok <=> (NOT cast(i AS boolean))",
    "(NOT (ok AND NULL)) <=> (cast(i AS boolean) OR ok)",
    "NOT cast(i AS boolean) AND id < 200",
]
QUERIES = [
    "SELECT * FROM {t}",
    "SELECT id, xs, m, ps, st FROM {t} WHERE id % 3 = 0",
    "SELECT st.x, st.z.q FROM {t}",
    "SELECT st.z FROM {t} WHERE st.y = 'abc'",
    "SELECT ps.u FROM {t}",
    "SELECT id, x FROM {t} LATERAL VIEW explode(xs) AS x",
    "SELECT map_keys(m), m['key1'] FROM {t}",
    "SELECT 1 FROM {t} WHERE i = 7",
    "SELECT count(*) FROM {t}",
    "SELECT count(*), count(i), count(st.x), count(1) FROM {t}",
    "SELECT count(*) FROM {t} WHERE s LIKE 'a%'",
    "SELECT count(DISTINCT s), count(DISTINCT i) FROM {t}",
    "SELECT sum(i), sum(k), sum(h), avg(i), min(i), max(i) FROM {t}",
    "SELECT sum(cast(l / 1000 AS bigint)), min(l), max(l), avg(l % 1000) FROM {t}",
    "SELECT sum(id), avg(id), min(id), max(id) FROM {t} WHERE i IS NOT NULL",
    "SELECT avg(l), count(*) FROM {t}",
    "SELECT s, avg(l), max(l) FROM {t} GROUP BY s",
    "SELECT sum(n), avg(n), min(n), max(n) FROM {t}",
    "SELECT min(f), max(f), min(d), max(d) FROM {t}",
    "SELECT min(d), max(d) FROM {t} WHERE NOT isnan(d)",
    "SELECT sum(d), avg(d) FROM {t} WHERE d BETWEEN -10 AND 10",
    "SELECT sum(f), avg(f) FROM {t} WHERE f BETWEEN -10 AND 10",
    "SELECT min(s), max(s), min(b), max(b), min(ok), max(ok) FROM {t}",
    "SELECT min(day), max(day), min(t), max(t), min(w), max(w) FROM {t}",
    "SELECT sum(i), count(*), min(s) FROM {t} WHERE id < 0",
    "SELECT s, count(*), sum(i), avg(d % 2) FROM {t} GROUP BY s",
    "SELECT s, count(*), sum(id), max(day) FROM {t} GROUP BY s",
    "SELECT s, ok, min(d), max(d), max(f) FROM {t} GROUP BY s, ok",
    "SELECT day, n, count(i), sum(n), avg(n) FROM {t} GROUP BY day, n",
    "SELECT d, count(*) FROM {t} GROUP BY d",
    "SELECT f, sum(id) FROM {t} GROUP BY f",
    "SELECT t, w, b, sum(h) FROM {t} GROUP BY t, w, b",
    "SELECT st.y, sum(st.x) FROM {t} GROUP BY st.y",
    "SELECT k, count(*) FROM {t} WHERE id > 5 GROUP BY k HAVING count(*) > 3",
    "SELECT s, sum(id) FILTER (WHERE i = 7) FROM {t} GROUP BY s",
    "SELECT i % 2, count(*) FROM {t} GROUP BY i % 2",
    "SELECT ok, approx_count_distinct(i) FROM {t} GROUP BY ok",
    "SELECT count(CASE WHEN NOT cast(i AS boolean) THEN 1 END) FROM {t}",
    "SELECT NOT cast(i AS boolean), count(*) FROM {t} GROUP BY 1",
    "SELECT id FROM {t} ORDER BY NOT cast(i AS boolean), id LIMIT 9",
    "SELECT id FROM {t} ORDER BY id DESC LIMIT 5",
    "SELECT id, s FROM {t} ORDER BY s NULLS LAST, id LIMIT 20",
    "SELECT id, s FROM {t} ORDER BY s DESC NULLS FIRST, id LIMIT 40",
    "SELECT id, d FROM {t} ORDER BY d DESC, id LIMIT 60",
    "SELECT id, n FROM {t} WHERE ok ORDER BY n, id DESC LIMIT 7 OFFSET 3",
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 17)",
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 10 OFFSET 4)",
    "SELECT count(*) FROM (SELECT id FROM {t} OFFSET 390)",
    "SELECT count(*) FROM (SELECT * FROM {t} WHERE i = 7 LIMIT 3)",
    "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.h = b.id WHERE b.i = 7",
    "SELECT count(*) FROM {t} a LEFT JOIN {t} b ON a.id = b.st.x",
    "SELECT id FROM {t} WHERE id IN (SELECT st.x FROM {t} WHERE i = 1)",
    "SELECT id FROM {t} a WHERE NOT EXISTS (SELECT 1 FROM {t} b WHERE b.h = a.id)",
    "SELECT s, sum(id) OVER (PARTITION BY s ORDER BY id) FROM {t}",
    "SELECT id FROM {t} WHERE i = 7 UNION SELECT id FROM {t} WHERE i = 1",
    "SELECT id FROM {t} WHERE id > (SELECT avg(id) FROM {t}) AND i = 42",
    "SELECT s, n, count(*) FROM {t} GROUP BY GROUPING SETS ((s), (n), ())",
]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return the names of a view over Parquet and of a view over Lance with the same rows."""
    folder = tmp_path_factory.mktemp("same")
    data = rows(COUNT)
    pq.write_table(data, folder / "rows.parquet")
    spark.read.parquet(str(folder / "rows.parquet")).createOrReplaceTempView("in_parquet")
    _write_in_pieces(folder / "rows.lance", data)
    spark.read.format("lance").load(str(folder / "rows.lance")).createOrReplaceTempView("in_lance")
    return "in_parquet", "in_lance"


def _write_in_pieces(path: Path, data: object) -> None:
    """Write fragments of 90 rows, with rows too many that are deleted again."""
    extra = rows(COUNT + 50).slice(COUNT)
    lancelake.write_dataset(
        data, path, max_rows_per_file=90, data_storage_version="2.2", enable_stable_row_ids=True
    )
    table = lancelake.write_dataset(extra, path, mode="append")
    table.delete(f"id >= {COUNT}")


@pytest.mark.parametrize("first", range(0, len(FILTERS), 16))
def test_filters(spark: SparkSession, tables: tuple[str, str], first: int) -> None:
    parquet, lance = (
        bag(spark.sql(" UNION ALL ".join(_filtered(t, first + n, f) for n, f in part)))
        for t in tables
        for part in [list(enumerate(FILTERS[first : first + 16]))]
    )
    assert lance == parquet


def _filtered(table: str, number: int, condition: str) -> str:
    return f"SELECT {number} AS number, id, s, st.z.q AS q FROM {table} WHERE {condition}"


@pytest.mark.parametrize("query", QUERIES)
def test_queries(spark: SparkSession, tables: tuple[str, str], query: str) -> None:
    parquet, lance = (bag(spark.sql(query.format(t=table))) for table in tables)
    assert lance == parquet


NAMES = ["a b", "a`b", 'q"x', "Ü", "CamelCase", "select", "it's", "a\\b", "{c}"]


def test_columns_with_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    numbers = {
        name: [(i * 7 + n) % 11 if i % 5 else None for i in range(40)]
        for n, name in enumerate(NAMES)
    }
    inner = [{"x y": i, "x.y": str(i), "p`q": {"Ü": i % 3}} if i % 4 else None for i in range(40)]
    table = pa.table({"id": list(range(40)), **numbers, "st": inner})
    lancelake.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=15)
    pq.write_table(table, tmp_path / "t.parquet")
    parquet = spark.read.parquet(str(tmp_path / "t.parquet"))
    lance = spark.read.format("lance").load(str(tmp_path / "t.lance"))
    quoted = ["`" + name.replace("`", "``") + "`" for name in NAMES]
    for column in [*quoted, "st.`x y`", "st.`x.y`", "st.`p``q`.`Ü`"]:
        found, wanted = (
            bag(frame.where(f"{column} = 3 OR {column} IS NULL").selectExpr("id", column))
            + bag(frame.groupBy(functions.expr(column).alias("k")).agg(functions.max("id")))
            for frame in (lance, parquet)
        )
        assert found == wanted
