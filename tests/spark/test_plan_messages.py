"""Messages between Spark's planner and Python: constant answers are given once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lancelake
from lancelake.spark.jvm.catalyst import remember_answers
from lancelake.spark.jvm.gateway import open_gateway
from lancelake.spark.jvm.proxy import Proxy
from lancelake.spark.planning.writable_table import WritableTable
from lancelake.spark.reading.scan import LanceScan, LanceScanBuilder
from lancelake.spark.reading.version_table import VersionTable

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


def counted(monkeypatch: pytest.MonkeyPatch, *methods: tuple[type[Proxy], str]) -> Counter[str]:
    """Return the number of calls of each method from now on."""
    calls: Counter[str] = Counter()

    def watch(cls: type[Proxy], name: str) -> None:
        original: Callable[..., Any] = getattr(cls, name)

        def call(self: Any, *args: Any) -> Any:
            calls[name] += 1
            return original(self, *args)

        monkeypatch.setattr(cls, name, call)

    for cls, name in methods:
        watch(cls, name)
    return calls


def test_a_query_asks_a_table_for_its_name_once(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch, (VersionTable, "name"))
    frame = spark.read.format("lance").load(path)
    rows = frame.alias("a").join(frame.alias("b"), "id").where("a.v > 3").collect()
    assert len(rows) == sum(n % 7 > 3 for n in range(ROWS))
    assert calls["name"] == 1


def test_a_query_asks_a_scan_for_its_description_and_its_batch_once(
    frame: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch, (LanceScan, "description"), (LanceScan, "toBatch"))
    assert frame.where("v = 3").groupBy("id").count().count() == sum(
        n % 7 == 3 for n in range(ROWS)
    )
    assert calls == {"description": 1, "toBatch": 1}


def test_a_table_of_a_catalog_is_asked_for_its_name_once(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch, (WritableTable, "name"))
    assert spark.sql(f"SELECT count(v) AS n FROM lance.`{path}` WHERE id < 5").first() == (5,)
    assert calls["name"] == 1


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
    object_ = remember_answers(gateway, Text(gateway))
    before = object_.toString()
    object_.apply("second")
    assert (before, object_.toString()) == ("first", "second")


def test_objects_are_equal_by_their_texts(spark: SparkSession) -> None:
    gateway = open_gateway(spark)
    one, two, other = (remember_answers(gateway, Text(gateway)) for _ in range(3))
    other.apply("another")
    assert one.equals(two)
    assert not one.equals(other)
    assert not one.equals("first")
