"""Messages between Spark's planner and Python: constant answers are given once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import DataFrame, SparkSession

import lancelake
from lancelake.spark.jvm.catalyst import remember_answers
from lancelake.spark.jvm.gateway import open_gateway
from lancelake.spark.jvm.proxy import Proxy
from lancelake.spark.reading.scan import LanceScanBuilder

ROWS = 200


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a table of two columns."""
    place = str(tmp_path / "t.lance")
    table = pa.table({"id": range(ROWS), "v": [n % 7 for n in range(ROWS)]})
    lancelake.write_dataset(table, place)
    return place


@pytest.fixture
def frame(spark: SparkSession, path: str) -> DataFrame:
    """Return the table's rows."""
    return spark.read.format("lance").load(path)


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the objects of Python that Java asks something from now on, once per question."""
    asked: list[str] = []
    original = ClientServerConnection._call_proxy

    def call(self: Any, obj_id: str, given: Any) -> Any:
        asked.append(obj_id)
        return original(self, obj_id, given)

    monkeypatch.setattr(ClientServerConnection, "_call_proxy", call)
    return asked


def named(spark: SparkSession, path: str) -> str:
    """Return the name of a table that the session has loaded before."""
    spark.table(f"lance.`{path}`").count()
    return f"lance.`{path}`"


def test_a_select_takes_eight_questions(
    spark: SparkSession, path: str, questions: list[str]
) -> None:
    table = named(spark, path)
    questions.clear()
    assert spark.sql(f"SELECT v FROM {table} WHERE id = 5").collect() == [(5,)]
    assert len(questions) <= 8, questions


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t} SET v = 1 WHERE id = 5",
        "DELETE FROM {t} WHERE id = 5",
        "MERGE INTO {t} t USING (SELECT 5L AS id, 1L AS v) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    ],
)
def test_a_change_of_rows_takes_twenty_questions(
    spark: SparkSession, path: str, questions: list[str], statement: str
) -> None:
    table = named(spark, path)
    questions.clear()
    spark.sql(statement.format(t=table))
    assert 0 < len(questions) <= 20, questions


def test_any_number_of_conditions_is_fetched_with_as_many_messages(
    frame: DataFrame, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    original: Callable[..., Any] = LanceScanBuilder.pushPredicates
    client: Any = open_gateway(spark).gateway._gateway_client
    send = client.send_command

    def push(self: LanceScanBuilder, predicates: Any) -> Any:
        # Messages that release objects are not counted: when they are sent depends on others.
        def watched(command: str, *args: Any, **named: Any) -> Any:
            if not command.startswith("m\n"):
                sent.append(command)
            return send(command, *args, **named)

        with monkeypatch.context() as during:
            during.setattr(client, "send_command", watched)
            return original(self, predicates)

    monkeypatch.setattr(LanceScanBuilder, "pushPredicates", push)
    numbers: list[int] = []
    for condition in ("id <> 0", " AND ".join(f"id <> {n} AND v < {n + 1}" for n in range(20))):
        sent.clear()
        frame.where(condition).count()
        numbers.append(len(sent))
    assert numbers == [1, 1]


class Text(Proxy):
    """An object of Python whose text changes when it is handed something."""

    class Java:
        implements = ("java.util.function.Function",)

    text = "first"

    def identity(self) -> str:
        return self.text

    def apply(self, text: Any) -> Any:
        self.text = str(text)


def test_an_object_is_asked_again_after_it_was_handed_something(spark: SparkSession) -> None:
    gateway = open_gateway(spark)
    object_ = remember_answers(gateway, Text(gateway), None)
    before = object_.toString()
    object_.apply("second")
    assert (before, object_.toString()) == ("first", "second")


def test_objects_are_equal_by_their_texts(spark: SparkSession) -> None:
    gateway = open_gateway(spark)
    one, two, other = (remember_answers(gateway, Text(gateway), None) for _ in range(3))
    other.apply("another")
    assert one.equals(two)
    assert not one.equals(other)
    assert not one.equals("first")
