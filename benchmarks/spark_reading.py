"""Benchmark of Spark reads of Lance tables, compared with Parquet in the same session.

python -m benchmarks.spark_reading --only limit
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

import lancelake
from benchmarks import tables
from benchmarks.measure import Case
from benchmarks.spark_runs import noop, quiet_session, report

_ROWS = 8_000_000
_FRAGMENT_ROWS = 1_000_000
_ROUNDS = 7
# Of what takes milliseconds, the compiler in Java makes more of the first rounds than we do.
_SHORT_ROUNDS = 41


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something asked of a DataFrame, the most that it may take compared with Parquet."""

    name: str
    target: float
    table: str
    ask: Callable[[DataFrame], object]
    rounds: int = _ROUNDS


QUESTIONS = (
    Question(name="full scan to noop", target=1.1, table="narrow", ask=noop),
    Question(
        name="2 of 20 columns, pushed aggregate",
        target=0.8,
        table="wide",
        ask=lambda f: f.agg(fn.sum("c3"), fn.max("d7")).collect(),
    ),
    Question(
        name="2 of 20 columns, pushed aggregate by group",
        target=0.8,
        table="wide",
        ask=lambda f: sorted(f.groupBy("g").agg(fn.sum("c3")).collect()),
    ),
    Question(
        name="2 of 20 columns, aggregate in Spark",
        target=1.5,
        table="wide",
        ask=lambda f: f.agg(fn.sum(fn.col("c3") % 7), fn.bit_xor("c7")).collect(),
    ),
    Question(
        name="count",
        target=0.5,
        table="narrow",
        ask=lambda f: f.count(),
        rounds=_SHORT_ROUNDS,
    ),
    Question(
        name="limit 10",
        target=0.5,
        table="narrow",
        ask=lambda f: len(f.limit(10).collect()),
        rounds=_SHORT_ROUNDS,
    ),
    Question(
        name="point filter",
        target=1.2,
        table="narrow",
        ask=lambda f: f.where("id = 4321000").collect(),
        rounds=_SHORT_ROUNDS,
    ),
    Question(
        name="filter that keeps 1 %",
        target=1.2,
        table="narrow",
        ask=lambda f: f.where("a < 0.01").agg(fn.sum("id"), fn.max("b")).collect(),
    ),
)


def main() -> None:
    """Report every question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    folder = tables.ROOT / "spark-reading"
    _prepare(folder)
    report(cases(folder), parser.parse_args().only)


def cases(folder: Path) -> Iterator[Case]:
    """Yield a case per question, in one session."""
    spark = quiet_session()
    lance = spark.read.format("lance")
    for question in QUESTIONS:
        place = str(folder / question.table)
        yield Case(
            name=question.name,
            target=question.target,
            ours=partial(lambda q, p: q.ask(lance.load(p)), question, f"{place}.lance"),
            official=partial(
                lambda q, p: q.ask(spark.read.parquet(p)), question, f"{place}.parquet"
            ),
            rounds=question.rounds,
        )
    spark.stop()


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, batch in (("narrow", _narrow), ("wide", _wide)):
        target = folder / f"{name}.lance"
        if not target.exists():
            lancelake.write_dataset(_reader(batch), target)
        if not (folder / f"{name}.parquet").exists():
            _write_parquet(folder / f"{name}.parquet", _reader(batch))


def _write_parquet(path: Path, reader: pa.RecordBatchReader) -> None:
    path.mkdir()
    for number, batch in enumerate(reader):
        table = pa.Table.from_batches([batch])
        pq.write_table(table, path / f"{number}.parquet", compression="snappy")


def _reader(batch: Callable[[int, int], pa.RecordBatch]) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, _ROWS, _FRAGMENT_ROWS):
            yield batch(start, min(_FRAGMENT_ROWS, _ROWS - start))

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
