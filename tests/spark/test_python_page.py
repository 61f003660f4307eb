"""The Python on the documentation pages runs, in the order of the pages."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

import lancelake
from lancelake.spark import register

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("spark.md", "streams.md")
BLOCK = re.compile(r"^```py\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Java, which may have been started in another folder, resolves these paths of streams.
PATH = re.compile(r'"(orders\.lance|copy\.lance|cp2?)"')
DAY = dt.date(2026, 1, 31)
VERSIONS = 17
"""The pages refer to versions up to this one."""


def embed(column: str) -> Column:
    """Return a vector of the texts in a column."""
    return f.array(f.length(column).cast("float"), f.lit(1.0).cast("float"))


def orders(*ids: int) -> pa.Table:
    """Return orders as the pages describe them."""
    columns = {
        "id": pa.array(ids, pa.int64()),
        "customer": pa.array([i % 20 for i in ids], pa.int64()),
        "amount": pa.array([i * 1.5 - 3 for i in ids], pa.float64()),
        "day": pa.array([DAY for _ in ids]),
        "state": [f"s{i % 3}" for i in ids],
        "note": [f"note {i}" for i in ids],
        "cancelled": [i % 5 == 0 for i in ids],
    }
    return pa.table(columns)


def articles() -> pa.Table:
    """Return articles with a text and an embedding, as the pages describe them."""
    words = ("harbour night", "the night train", "a quiet harbour", "ships at night")
    embeddings = pa.array([[0.1 * i, 0.7, 0.2] for i in range(4)], pa.list_(pa.float32(), 3))
    columns = {"id": [0, 1, 200, 201], "topic": ["ships", "trains", "ships", "ships"]}
    return pa.table({**columns, "text": words, "embedding": embeddings})


@pytest.fixture
def warehouse_of_page(
    spark: SparkSession, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Have the tables of the pages, and then the catalog of the other tests again."""
    monkeypatch.chdir(tmp_path)
    for path in ("orders.lance", "warehouse/db/orders.lance", "warehouse/db/totals.lance"):
        for number in range(VERSIONS):
            mode = "append" if number else "create"
            rows = orders(2 * number, 2 * number + 1)
            lancelake.write_dataset(rows, path, mode=mode, enable_stable_row_ids=True)
    dataset = lancelake.write_dataset(articles(), "warehouse/db/articles.lance")
    dataset.create_scalar_index("text", "INVERTED", with_position=True)
    yield
    for query in spark.streams.active:
        query.stop()
    register(spark, root=str(warehouse))


@pytest.mark.usefixtures("warehouse_of_page")
def test_the_blocks_of_the_pages_run(spark: SparkSession, tmp_path: Path) -> None:
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
    blocks = BLOCK.findall(PATH.sub(rf'"{tmp_path}/\1"', text))
    assert blocks
    late = spark.createDataFrame(orders(3, 5, 900).to_pandas())
    queries = spark.createDataFrame([([0.1, 0.7, 0.2],)], "asked array<float>")
    given = {"F": f, "embed": embed, "late": late, "pa": pa, "queries": queries}
    given["__name__"] = "page"
    new = spark.createDataFrame(orders(901, 902).to_pandas())
    for block in blocks:
        exec(compile(block, "page", "exec"), given)
        if "df" in given:
            given["df"] = new
    for query in spark.streams.active:
        query.processAllAvailable()
    read, copied = (lancelake.LanceDataset(f"{name}.lance") for name in ("orders", "copy"))
    assert copied.count_rows() == read.count_rows() > 0
    assert spark.table("lance.db.totals").where("id = 900").count() == 1
