"""Search from Spark: the same rows as embedded search, and plans without a shuffle of vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lancelake
from lancelake.errors import InvalidRequestError
from lancelake.spark import LanceTable
from tests.support.search_tables import DIMENSION, article_rows, article_vectors, write_articles

NAME = "lance.searched.articles"
QUERIES = article_vectors()[:9] + np.float32(0.01)
QUERY = QUERIES[4].tolist()


@pytest.fixture(scope="module")
def articles(tmp_path_factory: pytest.TempPathFactory) -> lancelake.LanceDataset:
    """Return a table of three fragments, with a deleted row."""
    made = write_articles(tmp_path_factory.mktemp("search") / "articles.lance")
    made.delete("id = 3")
    return made


@pytest.fixture
def table(spark: SparkSession, articles: lancelake.LanceDataset) -> LanceTable:
    return LanceTable.forPath(spark, articles.uri)


@pytest.fixture
def queries(spark: SparkSession) -> DataFrame:
    rows = [(number, vector.tolist()) for number, vector in enumerate(QUERIES)]
    return spark.createDataFrame(rows, "q long, asked array<float>").coalesce(1)


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


def jobs_of(spark: SparkSession, run: Any) -> int:
    """Return how many jobs a call starts."""
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("counted", "counted")
    try:
        run()
        return len(tracker.getJobIdsForGroup("counted"))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"filter": "topic = 'south'"},
        {"filter": "id < 30", "prefilter": False},
        {"metric": "cosine"},
        {"distanceRange": (0.0, 0.2)},
    ],
    ids=str,
)
def test_a_batch_equals_the_embedded_search(
    table: LanceTable,
    articles: lancelake.LanceDataset,
    queries: DataFrame,
    options: dict[str, Any],
) -> None:
    nearest = table.search(queries, k=4, columns=["id", "text"], withRowId=True, **options)
    scan = {key: value for key, value in options.items() if key in ("filter", "prefilter")}
    near = {"metric": options.get("metric"), "distance_range": options.get("distanceRange")}
    expected = articles.to_table(
        columns=["id", "text"],
        nearest={"column": "vector", "q": QUERIES, "k": 4, **near},
        with_row_id=True,
        **{"prefilter": True, **scan},
    )
    names = ["query_index", "id", "text", "_distance", "_rowid"]
    assert nearest.columns == names
    ordered = nearest.orderBy("query_index", "_distance", "id")
    assert rows_of(ordered) == [
        tuple(row[name] for name in names)
        for row in sorted(
            expected.to_pylist(), key=lambda r: (r["query_index"], r["_distance"], r["id"])
        )
    ]


@pytest.mark.parametrize("kind", [None, "IVF_PQ"])
def test_thousands_of_queries_equal_the_embedded_search(
    spark: SparkSession, tmp_path: Path, kind: str | None
) -> None:
    chance = np.random.default_rng(6)
    values = chance.random((600, 8), dtype=np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 8)
    rows = pa.table({"id": range(600), "v": lists})
    made = lancelake.write_dataset(rows, str(tmp_path / "t.lance"), max_rows_per_file=200)
    if kind is not None:
        made.create_index("v", kind, num_partitions=4, num_sub_vectors=4)
    asked = chance.random((5000, 8), dtype=np.float32)
    frame = spark.createDataFrame(pa.table({"asked": asked.tolist()}).to_pandas())
    table = LanceTable.forPath(spark, made.uri)
    nearest = table.search(frame.coalesce(1), "v", 3, columns=["id"], nprobes=2)
    near = {"column": "v", "q": asked, "k": 3, "nprobes": 2}
    expected = made.to_table(["id"], nearest=near).to_pylist()
    ordered = nearest.orderBy("query_index", "_distance", "id").collect()
    assert [row.asDict() for row in ordered] == sorted(
        expected, key=lambda row: (row["query_index"], row["_distance"], row["id"])
    )


@pytest.mark.parametrize(
    "options",
    [
        {"refineFactor": 3},
        {"filter": "id % 3 > 0"},
        {"filter": "id % 2 = 0 and _distance < 0.3", "prefilter": False, "refineFactor": 2},
    ],
)
def test_refined_and_filtered_batches_equal_the_embedded_search(
    spark: SparkSession, indexed: lancelake.LanceDataset, options: dict[str, Any]
) -> None:
    asked = np.random.default_rng(7).random((40, 8), dtype=np.float32)
    frame = spark.createDataFrame(pa.table({"asked": asked.tolist()}).to_pandas()).coalesce(1)
    table = LanceTable.forPath(spark, indexed.uri)
    nearest = table.search(frame, "v", 3, columns=["id"], nprobes=2, **options)
    near = {"column": "v", "q": asked, "k": 3, "nprobes": 2}
    near["refine_factor"] = options.get("refineFactor")
    filters = {key: options[key] for key in ("filter", "prefilter") if key in options}
    if "filter" in filters:
        filters.setdefault("prefilter", True)
    expected = indexed.to_table(["id"], nearest=near, **filters).to_pylist()
    ordered = nearest.orderBy("query_index", "_distance", "id").collect()
    assert [row.asDict() for row in ordered] == sorted(
        expected, key=lambda row: (row["query_index"], row["_distance"], row["id"])
    )
    plan = nearest._jdf.queryExecution().executedPlan().toString()
    exchanges = [line for line in plan.splitlines() if "Exchange" in line]
    assert ["hashpartitioning(query_index" in line for line in exchanges] == [True]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> lancelake.LanceDataset:
    """Return a table with an index and more rows than a filter reads without it."""
    values = np.random.default_rng(6).random((5000, 8), dtype=np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 8)
    uri = str(tmp_path_factory.mktemp("indexed") / "t.lance")
    rows = pa.table({"id": range(5000), "v": lists})
    made = lancelake.write_dataset(rows, uri, max_rows_per_file=2000)
    return made.create_index("v", "IVF_PQ", num_partitions=4, num_sub_vectors=4)


def test_vectors_are_not_shuffled(table: LanceTable, queries: DataFrame) -> None:
    nearest = table.search(queries, k=4)
    plan = nearest._jdf.queryExecution().executedPlan().toString()
    exchanges = [line for line in plan.splitlines() if "Exchange" in line]
    assert exchanges
    assert all("hashpartitioning(query_index" in line for line in exchanges)
    assert "vector" not in "".join(plan.splitlines()[plan.splitlines().index(exchanges[0]) :])


def test_all_columns_are_returned_by_default(table: LanceTable, queries: DataFrame) -> None:
    rows = table.search(queries, k=1).orderBy("query_index").collect()
    assert table.search(queries, k=1).columns[1:-1] == ["id", "topic", "text", "vector"]
    assert rows[4].id == 4
    assert rows[4].vector == pytest.approx(article_vectors()[4].tolist())


def test_a_single_query_runs_no_job(spark: SparkSession, table: LanceTable) -> None:
    assert jobs_of(spark, lambda: table.search(QUERY, k=3).collect()) == 0
    assert jobs_of(spark, lambda: table.textSearch("stone", 3).collect()) == 0
    assert jobs_of(spark, lambda: table.hybridSearch("stone", QUERY, k=3).collect()) == 0
    assert jobs_of(spark, lambda: table.toDF().collect()) > 0


def test_a_single_query_equals_the_embedded_search(
    table: LanceTable, articles: lancelake.LanceDataset
) -> None:
    nearest = table.search(QUERY, "vector", 5, columns=["id"], filter="id > 10", withRowId=True)
    expected = articles.search(
        nearest={"q": QUERY}, k=5, columns=["id"], filter="id > 10", with_row_id=True
    )
    assert [row.asDict() for row in nearest.collect()] == expected.to_pylist()


def test_a_text_search_equals_the_embedded_search(
    table: LanceTable, articles: lancelake.LanceDataset
) -> None:
    for text in ("harbour stone", '"fox harbour"'):
        nearest = table.textSearch(text, 5, columns=["id", "text"], filter="topic = 'north'")
        expected = articles.search(text, k=5, columns=["id", "text"], filter="topic = 'north'")
        assert [row.asDict() for row in nearest.collect()] == expected.to_pylist()


@pytest.mark.parametrize("weight", [None, 0.3])
def test_a_hybrid_search_equals_the_embedded_search(
    table: LanceTable, articles: lancelake.LanceDataset, weight: float | None
) -> None:
    nearest = table.hybridSearch(
        "harbour stone", QUERY, k=6, columns=["id"], filter="id > 10", vectorWeight=weight
    )
    expected = articles.search(
        "harbour stone",
        {"q": QUERY},
        k=6,
        columns=["id"],
        filter="id > 10",
        vector_weight=weight,
    )
    assert [row.asDict() for row in nearest.collect()] == expected.to_pylist()


def test_a_join_equals_the_embedded_search(
    table: LanceTable, articles: lancelake.LanceDataset, queries: DataFrame
) -> None:
    left = queries.repartition(3)
    nearest = table.knnJoin(left, "asked", k=3, columns=["id"], filter="topic = 'north'")
    assert nearest.columns == ["q", "asked", "id", "_distance"]
    expected = articles.to_table(
        columns=["id"],
        nearest={"column": "vector", "q": QUERIES, "k": 3},
        filter="topic = 'north'",
        prefilter=True,
    )
    wanted = [(r["query_index"], r["id"], r["_distance"]) for r in expected.to_pylist()]
    ordered = nearest.select("q", "id", "_distance").orderBy("q", "_distance", "id")
    assert rows_of(ordered) == sorted(wanted, key=lambda row: (row[0], row[2], row[1]))


def test_a_join_shuffles_nothing(table: LanceTable, queries: DataFrame) -> None:
    nearest = table.knnJoin(queries, "asked", k=3, columns=["id"])
    assert "Exchange" not in nearest._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("freshness", [None, "durable"])
def test_a_null_has_no_nearest_rows(
    spark: SparkSession, tmp_path: Path, freshness: str | None
) -> None:
    stored = {"id": [1, 2], "v": [[0.0, 1.0], [1.0, 0.0]]}
    columns = [pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.list_(pa.float32(), 2))]
    made = lancelake.write_dataset(
        pa.table(stored, schema=pa.schema(columns)), tmp_path / "t.lance"
    )
    made.wal.initialize(key="id", buckets=1)
    table = LanceTable.forPath(spark, made.uri)
    rows = [(1, None), (2, [1.0, 0.0]), (3, None), (4, [0.0, 1.0])]
    asked = spark.createDataFrame(rows, "q long, asked array<float>").coalesce(1)
    result = table.search(asked, k=1, columns=["id"], freshness=freshness).collect()
    assert sorted((row.query_index, row.id) for row in result) == [(1, 2), (3, 1)]
    joined = table.knnJoin(asked, k=1, columns=["id"], freshness=freshness).collect()
    assert sorted((row.q, row.id) for row in joined) == [(2, 2), (4, 1)]
    none = asked.where("asked IS NULL")
    assert table.search(none, freshness=freshness).collect() == []
    assert table.knnJoin(none, freshness=freshness).collect() == []


def test_a_search_without_a_hit_returns_no_rows(spark: SparkSession, named: LanceTable) -> None:
    none = "id < 0"
    for found in (
        named.search(QUERY, filter=none),
        named.search([float("nan")] * DIMENSION),
        named.textSearch("zzzz"),
        named.hybridSearch("zzzz", QUERY, filter=none),
        named.search(QUERY, columns=[], filter=none),
        spark.sql(f"CALL lance.system.text_search('{NAME}', 'zzzz')"),
    ):
        assert found.columns
        assert found.collect() == []


def test_no_queries_find_nothing(spark: SparkSession, table: LanceTable) -> None:
    none = spark.createDataFrame([], "asked array<float>")
    assert table.search(none, columns=["id"]).collect() == []
    assert table.knnJoin(none, columns=["id"]).collect() == []


def test_impossible_searches_are_refused(
    spark: SparkSession, table: LanceTable, queries: DataFrame
) -> None:
    null = spark.createDataFrame([([None, 1.0],)], "asked array<float>")
    ragged = spark.createDataFrame([([1.0],), ([1.0, 2.0],)], "asked array<float>")
    refused = {
        "must not contain nulls": lambda: table.search(null),
        "vectors must not contain nulls": lambda: table.search([1.0, None]),  # type: ignore[list-item]
        "same length, but got 1 and 2": lambda: table.search(ragged),
        "does not match": lambda: table.search([1.0, 2.0]),
        "'text' has no vectors": lambda: table.search(queries, "text"),
        "no column 'nothing'": lambda: table.search(QUERY, columns=["nothing"]),
        "the queries have no column 'x'": lambda: table.search(queries, queryColumn="x"),
        "Nearest-K must be > 0": lambda: table.search(queries, k=0),
        "both sides of the join have a column 'id'": lambda: table.knnJoin(
            queries.withColumnRenamed("q", "id")
        ),
    }
    for problem, act in refused.items():
        with pytest.raises(InvalidRequestError, match=problem):
            act()


def test_a_query_of_another_size_is_refused_before_a_job(
    spark: SparkSession, table: LanceTable
) -> None:
    short = spark.createDataFrame([([1.0, 2.0],)], "asked array<float>")
    with pytest.raises(InvalidRequestError, match="Query vector size 2 does not match"):
        table.search(short)


@pytest.fixture
def named(spark: SparkSession, tmp_path: Path) -> Iterator[LanceTable]:
    """Return a table of the catalog with a text index."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.searched")
    size = f"'vector.arrow.fixed-size-list.size' = '{DIMENSION}'"
    spark.sql(
        f"CREATE TABLE {NAME} (id bigint, topic string, text string, vector array<float>) "
        f"TBLPROPERTIES ({size})"
    )
    rows = [tuple(row.values()) for row in article_rows().to_pylist()]
    frame = spark.createDataFrame(rows, "id long, topic string, text string, vector array<float>")
    frame.coalesce(1).writeTo(NAME).append()
    result = LanceTable.forName(spark, NAME)
    spark.sql(f"CALL lance.system.create_index('{NAME}', 'text', 'INVERTED')")
    yield result
    spark.sql(f"DROP TABLE {NAME}")


def test_procedures_return_the_rows_of_a_search(spark: SparkSession, named: LanceTable) -> None:
    vector = f"array({', '.join(map(str, QUERY))})"
    statements = {
        f"vector_search('searched.articles', {vector}, 3)": named.search(QUERY, k=3),
        "text_search('searched.articles', 'harbour stone', 3)": named.textSearch(
            "harbour stone", 3
        ),
        f"hybrid_search('searched.articles', 'stone', {vector}, k => 3, "
        "vector_weight => 0.3, filter => 'id > 10', columns => 'id,text')": named.hybridSearch(
            "stone", QUERY, k=3, vectorWeight=0.3, filter="id > 10", columns=["id", "text"]
        ),
    }
    for statement, expected in statements.items():
        frame = spark.sql(f"CALL lance.system.{statement}")
        assert frame.columns == expected.columns
        assert frame.collect() == expected.collect()
