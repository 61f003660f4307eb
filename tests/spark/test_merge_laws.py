"""Merges of a DataFrame mean what merges of rows in memory mean: the same histories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.spark import LanceTable
from lancelake.spark.api.merge_builder import LanceMergeBuilder
from lancelake.table.merge.clauses import Clauses, DeleteRow, InsertAll, UpdateAll, UpdateSet
from tests.support.merge_histories import (
    Merge,
    NewColumn,
    Row,
    Step,
    Upserts,
    content,
    expected,
    random_history,
)

SPARK_TYPES = {"id": "long", "n": "long", "s": "string", "added": "long", "gone": "boolean"}


def frame(spark: SparkSession, rows: list[Row], columns: tuple[str, ...]) -> DataFrame:
    schema = ", ".join(f"{name} {SPARK_TYPES[name]}" for name in columns)
    values = [tuple(row.get(name) for name in columns) for row in rows]
    return spark.createDataFrame(values, schema).alias("source")


def with_clauses(builder: LanceMergeBuilder, clauses: Clauses[str]) -> LanceMergeBuilder:
    for matched in clauses.matched:
        if isinstance(matched, UpdateAll):
            builder.whenMatchedUpdateAll(matched.condition)
        elif isinstance(matched, UpdateSet):
            builder.whenMatchedUpdate(matched.condition, matched.values)
        else:
            builder.whenMatchedDelete(matched.condition)
    for new in clauses.not_matched:
        if isinstance(new, InsertAll):
            builder.whenNotMatchedInsertAll(new.condition)
        else:
            builder.whenNotMatchedInsert(new.condition, new.values)
    for other in clauses.not_matched_by_source:
        if isinstance(other, DeleteRow):
            builder.whenNotMatchedBySourceDelete(other.condition)
        else:
            builder.whenNotMatchedBySourceUpdate(other.condition, other.values)
    return builder


def apply(spark: SparkSession, uri: str, step: Step) -> None:
    if isinstance(step, NewColumn):
        lance.dataset(uri).add_columns(pa.field("added", pa.int64()))
        return
    table = LanceTable.forPath(spark, uri).alias("target")
    names = tuple(table.toDF().columns)
    if isinstance(step, Merge):
        builder = table.merge(frame(spark, step.rows, step.columns), "target.id = source.id")
        if set(step.columns) - set(names):
            builder.withSchemaEvolution()
        with_clauses(builder, step.clauses).execute()
        return
    rows = [*step.newest, *({"id": key, "gone": True} for key in {*step.gone})]
    source = frame(spark, [{"gone": False} | row for row in rows], (*names, "gone"))
    values: Mapping[str, str] = {name: f"source.{name}" for name in names}
    table.merge(source, "target.id = source.id").whenMatchedDelete("source.gone").whenMatchedUpdate(
        set=values
    ).whenNotMatchedInsert("NOT source.gone", values).execute()


@pytest.mark.filterwarnings("ignore:.*has no key filter")
@pytest.mark.parametrize("seed", range(6))
def test_rows_of_a_frame(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    history = random_history(chance, has_key=bool(seed % 2), most_steps=3)
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(
        history.table, uri, max_rows_per_file=5, enable_stable_row_ids=chance.random() < 0.5
    )
    for step, wanted in zip(history.steps, expected(history), strict=True):
        try:
            apply(spark, uri, step)
        except InvalidRequestError as error:
            assert isinstance(step, Merge)
            assert "Ambiguous" in str(error)
        assert content(lance.dataset(uri).to_table()) == wanted


def test_histories_have_all_kinds_of_steps() -> None:
    histories = [
        random_history(Random(seed), has_key=bool(seed % 2), most_steps=3) for seed in range(6)
    ]
    steps = [step for history in histories for step in history.steps]
    assert any(isinstance(step, Upserts) for step in steps)
    assert any(isinstance(step, Merge) and step.clauses.not_matched_by_source for step in steps)
