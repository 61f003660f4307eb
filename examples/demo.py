"""Demo pipeline on local Spark: ingest, merge, streaming, change data feed and time travel.

python examples/demo.py [--rows N] [--uri FOLDER] [--master local[*]]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rich.console import Console
from rich.text import Text

import lancelake
from lancelake.spark import LanceTable, session

ROWS = 2_000_000
MARK = ".lancelake-demo"
DIMENSIONS = 8
QUIET = {
    "spark.driver.memory": "3g",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

console = Console(highlight=False)


@dataclass(frozen=True)
class Step:
    """Something that was done: what it says of itself, and how long it took."""

    name: str
    result: str
    seconds: float


class Pipeline:
    """The steps, each of which does one thing to the tables in a folder."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        """Prepare; nothing is written yet."""
        self.spark = spark
        self.rows = rows
        self.folder = folder
        self.orders = str(folder / "orders.lance")
        self.changes = str(folder / "changes.lance")

    def ingest(self) -> str:
        """Write the orders."""
        orders(self.spark, 0, self.rows).write.format("lance").mode("append").save(self.orders)
        found = lancelake.LanceDataset(self.orders)
        files = [file for fragment in found.get_fragments() for file in fragment.data_files()]
        size = sum(file.file_size_bytes or 0 for file in files)
        return f"{found.count_rows():,} rows, {size / 1e6:.0f} MB in {len(files)} files"

    def merge(self) -> str:
        """Merge changes that came late: 1 % of the orders, and 1 % more."""
        late = self.rows // 100
        changed = orders(self.spark, 0, self.rows).where("id % 100 = 7").limit(late)
        changed = changed.withColumn("amount", f.col("amount") + 1).withColumn(
            "note", f.lit("corrected")
        )
        new = orders(self.spark, self.rows, self.rows + late)
        done = (
            LanceTable.forPath(self.spark, self.orders)
            .alias("o")
            .merge(changed.unionAll(new).alias("late"), "o.id = late.id")
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
            .collect()[0]
        )
        return f"{done.num_updated_rows:,} updated, {done.num_inserted_rows:,} inserted"

    def compute(self) -> str:
        """Add a column that is computed from others; no row is rewritten."""
        table = LanceTable.forPath(self.spark, self.orders)
        table.addColumns({"tax": "amount * 0.19"})
        total = table.toDF().agg(f.sum("tax")).collect()[0][0]
        return f"column tax, {total:,.0f} in all"

    def stream(self) -> str:
        """Let a stream of files flow in; run it twice: what has landed does not land again."""
        inbox = str(self.folder / "inbox")
        first = self.rows * 2
        events = orders(self.spark, first, first + 20_000)
        events.repartition(2).write.mode("overwrite").parquet(inbox)
        before = lancelake.LanceDataset(self.orders).count_rows()
        for _ in range(2):
            query = (
                self.spark.readStream.schema(events.schema)
                .parquet(inbox)
                .writeStream.format("lance")
                .option("checkpointLocation", str(self.folder / "checkpoint"))
                .trigger(availableNow=True)
                .start(self.orders)
            )
            query.awaitTermination()
        after = lancelake.LanceDataset(self.orders).count_rows()
        return f"{after - before:,} rows streamed in, once, though the query ran twice"

    def feed(self) -> str:
        """Read what changed since the first version, as a stream into another table."""
        query = (
            self.spark.readStream.format("lance")
            .option("readChangeFeed", "true")
            .option("startingVersion", "2")
            .load(self.orders)
            .select("id", "_change_type", "_commit_version")
            .writeStream.format("lance")
            .option("checkpointLocation", str(self.folder / "feed-checkpoint"))
            .trigger(availableNow=True)
            .start(self.changes)
        )
        query.awaitTermination()
        counts = self.spark.read.format("lance").load(self.changes).groupBy("_change_type").count()
        found = sorted((row[0], row[1]) for row in counts.collect())
        return ", ".join(f"{count:,} {kind}" for kind, count in found)

    def travel(self) -> str:
        """Ask the first version and the newest the same question."""
        name = f"lance.`{self.orders}`"
        question = "SELECT count(*), round(sum(amount)) FROM {} {}"
        then = self.spark.sql(question.format(name, "VERSION AS OF 1")).collect()[0]
        now = self.spark.sql(question.format(name, "")).collect()[0]
        return f"version 1: {then[0]:,} rows, sum {then[1]:,.0f}; now: {now[0]:,}, {now[1]:,.0f}"

    def official(self) -> str:
        """Let official Lance open the table, in a process that knows nothing of us."""
        program = (
            "import lance, sys; ds = lance.dataset(sys.argv[1]); ds.validate(); "
            "print(lance.__version__, ds.version, f'{ds.count_rows():,}')"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, self.orders],
            capture_output=True,
            check=True,
            encoding="utf-8",
        )
        release, version, rows = done.stdout.split()
        return f"pylance {release} validates version {version} and counts {rows} rows"

    def check(self) -> str:
        """Check the files, counts and ids of the newest version."""
        lancelake.LanceDataset(self.orders).validate()
        return "files, counts and ids of the newest version in order"


def orders(spark: SparkSession, start: int, stop: int) -> DataFrame:
    """Return orders with a text and a small embedding, the same for the same ids."""
    vector = f.array(
        *[((f.col("id") * (7 + i) % 1000) / 1000).cast("float") for i in range(DIMENSIONS)]
    )
    return spark.range(start, stop).select(
        "id",
        (f.col("id") * 31 % 50_000).alias("customer"),
        ((f.col("id") * 17 % 10_000) / 100).alias("amount"),
        f.concat(f.lit("order "), f.col("id").cast("string")).alias("note"),
        f.timestamp_seconds(f.lit(1_700_000_000) + f.col("id") % 86_400).alias("placed"),
        vector.alias("embedding"),
    )


def run(pipeline: Pipeline) -> list[Step]:
    """Do one step after the other, and say what each did."""
    steps: list[tuple[str, Callable[[], str]]] = [
        ("ingest", pipeline.ingest),
        ("merge late changes", pipeline.merge),
        ("stream in", pipeline.stream),
        ("change feed out", pipeline.feed),
        ("computed column", pipeline.compute),
        ("time travel", pipeline.travel),
        ("official Lance", pipeline.official),
        ("check", pipeline.check),
    ]
    done: list[Step] = []
    for name, action in steps:
        with console.status(f"{name} ..."):
            begun = time.perf_counter()
            result = action()
            done.append(Step(name, result, time.perf_counter() - begun))
        line = Text.assemble(
            (f"{name:<20}", "bold"), (f"{done[-1].seconds:6.1f} s  ", "cyan"), result
        )
        console.print(line, soft_wrap=True)
    return done


@contextlib.contextmanager
def stderr_to(path: Path) -> Iterator[None]:
    """Let what this process and Java say on standard error go to a file."""
    kept = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def ensure_own(folder: Path) -> None:
    """Stop unless the folder, which is about to be replaced, is new, empty or of an earlier run."""
    if folder.exists() and not (folder / MARK).exists() and not is_empty(folder):
        sys.exit(f"{folder} exists and is not of this demo: remove it, or name another with --uri")


def is_empty(folder: Path) -> bool:
    """Whether this is a folder with nothing in it."""
    return folder.is_dir() and not any(folder.iterdir())


def main() -> int:
    """Run the pipeline and say what to try next."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"orders to make ({ROWS:,})")
    parser.add_argument("--uri", default="demo-tables", help="folder for the tables")
    parser.add_argument("--master", default="local[*]", help="where Spark runs")
    chosen = parser.parse_args()
    folder = Path(chosen.uri).absolute()
    ensure_own(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    begun = time.perf_counter()
    # Java keeps the standard error that it starts with.
    with console.status("starting Spark ..."), stderr_to(folder / "spark.log"):
        spark = session(chosen.master, root=str(folder), **QUIET)
    head = f"Spark {spark.version} on {chosen.master}, lancelake {lancelake.__version__}"
    console.print(Text(head, style="bold green"))
    pipeline = Pipeline(spark, folder, chosen.rows)
    run(pipeline)
    spark.stop()
    console.print(f"\n{time.perf_counter() - begun:.0f} s in all. The tables stay. Try:")
    shown = pipeline.orders
    tool = Path(sys.executable).with_name("lancelake")
    for command, meaning in (
        (f"{tool} log {shown}", "what made each version"),
        (f"{tool} changes {shown} --from 1", "rows that changed"),
        (f'{tool} sql {shown} "select count(*) from dataset"', "SQL without Spark"),
        (f"{tool} check {shown} --data", "read every value"),
    ):
        console.print(Text.assemble("  ", (command, "cyan"), f"  ({meaning})"), soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
