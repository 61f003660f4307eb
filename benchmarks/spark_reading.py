"""How fast does Spark read Lance tables, compared with Parquet in the same session?

python -m benchmarks.spark_reading --rows 8000000
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

import lancelake
from lancelake.spark import session

_FRAGMENT_ROWS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something asked of a DataFrame, the most that it may take compared with Parquet."""

    name: str
    target: float
    table: str
    ask: Callable[[DataFrame], object]


def _noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


QUESTIONS = (
    Question(name="full scan to noop", target=1.1, table="narrow", ask=_noop),
    Question(
        name="2 of 20 columns, pushed aggregate",
        target=0.8,
        table="wide",
        ask=lambda f: f.agg(fn.sum("c3"), fn.avg("c7")).collect(),
    ),
    Question(
        name="2 of 20 columns, pushed aggregate by group",
        target=0.8,
        table="wide",
        ask=lambda f: f.groupBy("g").agg(fn.sum("c3")).collect(),
    ),
    Question(
        name="2 of 20 columns, aggregate in Spark",
        target=1.5,
        table="wide",
        ask=lambda f: f.agg(fn.sum(fn.col("c3") % 7), fn.stddev("c7")).collect(),
    ),
    Question(name="count", target=0.5, table="narrow", ask=lambda f: f.count()),
    Question(name="limit 10", target=0.5, table="narrow", ask=lambda f: f.limit(10).collect()),
    Question(
        name="point filter",
        target=1.2,
        table="narrow",
        ask=lambda f: f.where("id = 4321000").collect(),
    ),
    Question(
        name="filter that keeps 1 %",
        target=1.2,
        table="narrow",
        ask=lambda f: f.where("a < 0.01").agg(fn.sum("id"), fn.max("b")).collect(),
    ),
)


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="spark-reading-"))
    _prepare(folder, given.rows)
    conf: dict[str, Any] = {
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": 2,
        "spark.driver.memory": "3g",
    }
    spark = session("local[2]", **conf)
    for question in QUESTIONS:
        if given.only in question.name:
            print(_compare(spark, folder, question, given.rounds), flush=True)
    spark.stop()


def _compare(spark: SparkSession, folder: Path, question: Question, rounds: int) -> str:
    lance, parquet = (str(folder / f"{question.table}.{kind}") for kind in ("lance", "parquet"))
    ways: dict[str, Callable[[], object]] = {
        "lance": lambda: question.ask(spark.read.format("lance").load(lance)),
        "parquet": lambda: question.ask(spark.read.parquet(parquet)),
    }
    times: dict[str, list[float]] = {kind: [] for kind in ways}
    work: dict[str, list[float]] = {kind: [] for kind in ways}
    for turn in range(rounds + 1):
        for kind, way in ways.items():
            start, used = time.perf_counter(), _cpu_seconds()
            way()
            if turn:
                times[kind].append(time.perf_counter() - start)
                work[kind].append(_cpu_seconds() - used)
    ours, theirs = (statistics.median(times[kind]) for kind in ("lance", "parquet"))
    our_work, their_work = (statistics.median(work[kind]) for kind in ("lance", "parquet"))
    ratio = ours / theirs
    verdict = "ok" if ratio <= question.target else "slow"
    return (
        f"{question.name:43} lance {ours:6.2f} s  parquet {theirs:6.2f} s  ratio {ratio:5.2f}  "
        f"target {question.target:4.2f} {verdict:4}  processor {our_work:5.2f} s and "
        f"{their_work:5.2f} s: {our_work / max(their_work, 0.01):5.2f}"
    )


def _cpu_seconds() -> float:
    """Add up the processor time of this process and all below it, which load does not change."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            pid, parent = int(folder.name), int(fields[1])
            ticks[pid] = sum(map(int, fields[11:15]))
            children.setdefault(parent, []).append(pid)
    found, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        found += ticks.get(pid, 0)
        waiting += children.get(pid, [])
    return found / os.sysconf("SC_CLK_TCK")


def _prepare(folder: Path, rows: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, batch in (("narrow", _narrow), ("wide", _wide)):
        target = folder / f"{name}.lance"
        if not target.exists():
            lancelake.write_dataset(_reader(batch, rows), target)
        if not (folder / f"{name}.parquet").exists():
            _write_parquet(folder / f"{name}.parquet", _reader(batch, rows))


def _write_parquet(path: Path, reader: pa.RecordBatchReader) -> None:
    path.mkdir()
    for number, batch in enumerate(reader):
        table = pa.Table.from_batches([batch])
        pq.write_table(table, path / f"{number}.parquet", compression="snappy")


def _reader(batch: Callable[[int, int], pa.RecordBatch], rows: int) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, rows, _FRAGMENT_ROWS):
            yield batch(start, min(_FRAGMENT_ROWS, rows - start))

    return pa.RecordBatchReader.from_batches(batch(0, 1).schema, batches())


def _narrow(start: int, rows: int) -> pa.RecordBatch:
    rng = np.random.default_rng(start)
    texts = [f"name-{i % 1000}" for i in range(rows)]
    return pa.record_batch(
        {
            "id": np.arange(start, start + rows),
            "a": rng.random(rows),
            "b": texts,
            "c": rng.integers(0, 1 << 40, rows),
        }
    )


def _wide(start: int, rows: int) -> pa.RecordBatch:
    rng = np.random.default_rng(start)
    columns: dict[str, Any] = {f"c{i}": rng.integers(0, 1 << 30, rows) for i in range(10)}
    columns |= {f"d{i}": rng.random(rows) for i in range(9)}
    return pa.record_batch({**columns, "g": [f"g{i % 100}" for i in range(rows)]})


if __name__ == "__main__":
    main()
