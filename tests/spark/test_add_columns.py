"""Columns that Spark computes, added without rewriting a row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf, pandas_udf

import lancelake
from lancelake.errors import InvalidRequestError, LanceTableError
from lancelake.spark import LanceTable
from lancelake.spark.api import columns
from lancelake.spark.jobs.engine import on_partitions

ROWS = 1000
# Their declared types leave no room for functions of plain types.
make_udf: Any = pandas_udf
make_arrow_udf: Any = arrow_udf


def embedded(column: str) -> Column:
    """Return two numbers for each text, made by a UDF of pandas."""

    def numbers(texts: pd.Series) -> pd.Series:
        return texts.map(lambda text: [float(len(text)), 0.5])

    result: Column = make_udf(numbers, "array<float>")(column)
    return result


def shouted(column: str) -> Column:
    """Return texts in capitals, made by a UDF of Arrow."""

    def upper(texts: pa.Array) -> pa.Array:
        return pc.utf8_upper(texts)

    result: Column = make_arrow_udf(upper, "string")(column)
    return result


@pytest.fixture(params=[True, False], ids=["stable_row_ids", "addresses"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a table of many fragments, some rows of which are deleted."""
    place = str(tmp_path / "t.lance")
    rows = pa.table({"id": range(ROWS), "text": [f"t{i}" for i in range(ROWS)]})
    made = lancelake.write_dataset(
        rows, place, max_rows_per_file=90, enable_stable_row_ids=request.param
    )
    made.delete("id % 7 = 3 OR (id >= 180 AND id < 270)")
    return place


def live() -> Iterator[int]:
    """Yield the ids that are not deleted."""
    return (i for i in range(ROWS) if i % 7 != 3 and not 180 <= i < 270)


def rows(uri: str) -> list[dict[str, Any]]:
    """Return the rows of a table by id, after checking the table."""
    dataset = lancelake.LanceDataset(uri)
    dataset.validate()
    return sorted(dataset.to_table().to_pylist(), key=lambda row: int(row["id"]))


def files(uri: str) -> list[list[str]]:
    """Return the paths of each fragment's first file."""
    fragments = lancelake.LanceDataset(uri).get_fragments()
    return [[file.path for file in fragment.data_files()][:1] for fragment in fragments]


def test_expressions_and_functions_make_columns(spark: SparkSession, uri: str) -> None:
    before = files(uri)
    LanceTable.forPath(spark, uri).addColumns(
        {"len": f.length("text"), "emb": embedded("text"), "loud": shouted("text")}
    )
    expected = [
        {"id": i, "text": f"t{i}", "len": n, "emb": [float(n), 0.5], "loud": f"T{i}"}
        for i in live()
        if (n := len(f"t{i}"))
    ]
    assert rows(uri) == expected
    assert files(uri) == before


def test_columns_are_stored_as_the_type_asked_for(spark: SparkSession, uri: str) -> None:
    vectors = pa.list_(pa.float32(), 2)
    table = LanceTable.forPath(spark, uri)
    table.addColumns({"emb": embedded("text")}, types={"emb": vectors})
    assert lancelake.LanceDataset(uri).schema.field("emb").type == vectors
    assert rows(uri)[0]["emb"] == [2.0, 0.5]


def test_expressions_that_look_at_other_rows_come_back_in_order(
    spark: SparkSession, uri: str
) -> None:
    window = Window.partitionBy(f.col("id") % 10).orderBy(f.col("id").desc())
    LanceTable.forPath(spark, uri).addColumns({"next": f.lag("id").over(window)})
    last: dict[int, int] = {}
    for row in reversed(rows(uri)):
        assert row["next"] == last.get(row["id"] % 10)
        last[row["id"] % 10] = row["id"]


def test_expressions_that_make_rows_are_refused(spark: SparkSession, uri: str) -> None:
    with pytest.raises(LanceTableError, match="one value for each row"):
        LanceTable.forPath(spark, uri).addColumns({"e": f.explode(f.array(f.lit(1), f.lit(2)))})
    assert lancelake.LanceDataset(uri).version == 2


def test_a_function_of_batches_runs_on_executors(spark: SparkSession, uri: str) -> None:
    def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"twice": pc.multiply(batch["id"], 2)})

    schema = pa.schema([("twice", pa.int64())])
    LanceTable.forPath(spark, uri).addColumns(doubled, outputSchema=schema)
    assert [row["twice"] for row in rows(uri)] == [2 * i for i in live()]


def test_texts_and_columns_mix(spark: SparkSession, uri: str) -> None:
    LanceTable.forPath(spark, uri).addColumns({"a": "id + 1", "b": f.lit(1)})
    assert [(row["a"], row["b"]) for row in rows(uri)] == [(i + 1, 1) for i in live()]


def test_no_columns_are_refused(spark: SparkSession, uri: str) -> None:
    with pytest.raises(InvalidRequestError, match="no columns were specified"):
        LanceTable.forPath(spark, uri).addColumns({})


def test_a_column_that_is_there_is_refused(spark: SparkSession, uri: str) -> None:
    with pytest.raises(LanceTableError, match="text"):
        LanceTable.forPath(spark, uri).addColumns({"text": f.lit(1)})


def test_an_error_in_a_function_leaves_the_table_as_it_was(spark: SparkSession, uri: str) -> None:
    def broken(ids: pd.Series) -> pd.Series:
        raise ValueError(f"no number for {len(ids)} rows")

    with pytest.raises(PySparkException, match="no number"):
        LanceTable.forPath(spark, uri).addColumns({"x": make_udf(broken, "long")("id")})
    assert lancelake.LanceDataset(uri).version == 2


def test_rows_added_meanwhile_get_values_too(
    spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[str] = []

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        result = on_partitions(*args, **kwargs)
        if not described:
            more = pa.table({"id": [ROWS], "text": ["late"]})
            lancelake.write_dataset(more, uri, mode="append")
        described.append(kwargs["description"])
        return result

    monkeypatch.setattr(columns, "on_partitions", interrupted)
    LanceTable.forPath(spark, uri).addColumns({"len": f.length("text")})
    assert [row["len"] for row in rows(uri)] == [*(len(f"t{i}") for i in live()), 4]
    assert len(described) == 2


def test_a_run_resumes_where_the_last_one_ended(
    spark: SparkSession, uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    monkeypatch.setattr(columns, "_WAVE", 2)

    def killed(frame: Any, work: Any, **kwargs: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(len(work.fragments))
        return on_partitions(frame, work, **kwargs)

    table = LanceTable.forPath(spark, uri)
    checkpoint = tmp_path / "kept.sqlite"
    with monkeypatch.context() as patched:
        patched.setattr(columns, "on_partitions", killed)
        with pytest.raises(KeyboardInterrupt):
            table.addColumns({"len": f.length("text")}, checkpoint=str(checkpoint))
    before = set(Path(uri, "data").iterdir())
    table.addColumns({"len": f.length("text")}, checkpoint=str(checkpoint))
    assert [row["len"] for row in rows(uri)] == [len(f"t{i}") for i in live()]
    fragments = len(files(uri))
    assert len(set(Path(uri, "data").iterdir()) - before) == fragments - sum(done)
    assert not checkpoint.exists()


@pytest.mark.parametrize("is_columnar", ["true", "false"])
def test_functions_see_the_rows_whichever_way_spark_hands_them_over(
    spark: SparkSession, uri: str, is_columnar: str
) -> None:
    setting = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
    before = spark.conf.get(setting, "true")
    spark.conf.set(setting, is_columnar)
    try:
        frame = spark.read.format("lance").load(uri).select("id", embedded("text").alias("emb"))
        result = {row.id: row.emb[0] for row in frame.collect()}
    finally:
        spark.conf.set(setting, str(before))
    assert result == {i: len(f"t{i}") for i in live()}
