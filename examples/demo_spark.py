"""Demo pipeline on Spark: ingest, merge, streams, change data feed, search, MemWAL, compaction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from demo_official import opened_by_official
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.readwriter import DataStreamWriter

import lancelake
from lancelake.spark import LanceTable, session

DIMENSIONS = 8
QUIET = {
    "spark.driver.memory": "3g",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A busy machine starts its processes slowly.
    "spark.network.timeout": "600s",
    "spark.python.authenticate.socketTimeout": "600s",
}
LATE = "to connect back"
ATTEMPTS = 5


def started(master: str, folder: Path) -> SparkSession:
    """Start Spark with a catalog of the folder."""
    return session(master, root=str(folder), **QUIET)


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
            run_to_end(
                self.spark.readStream.schema(events.schema)
                .parquet(inbox)
                .writeStream.format("lance")
                .option("checkpointLocation", str(self.folder / "checkpoint")),
                self.orders,
            )
        after = lancelake.LanceDataset(self.orders).count_rows()
        return f"{after - before:,} rows streamed in, once, though the query ran twice"

    def feed(self) -> str:
        """Read what changed since the first version, as a stream into another table."""
        run_to_end(
            self.spark.readStream.format("lance")
            .option("readChangeFeed", "true")
            .option("startingVersion", "2")
            .load(self.orders)
            .select("id", "_change_type", "_commit_version")
            .writeStream.format("lance")
            .option("checkpointLocation", str(self.folder / "feed-checkpoint")),
            self.changes,
        )
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
        return opened_by_official(self.orders)

    def text(self) -> str:
        """Build a text index on the executors, and search the notes."""
        table = LanceTable.forPath(self.spark, self.orders)
        table.createIndex("note", "INVERTED")
        found = table.textSearch("corrected", k=3).select("id", "note").collect()
        return f"index of {self.rows:,} notes; best for 'corrected': orders " + ", ".join(
            str(row.id) for row in found
        )

    def vectors(self) -> str:
        """Build a vector index, and search many queries as one job."""
        table = LanceTable.forPath(self.spark, self.orders)
        table.createIndex("embedding", "IVF_FLAT", num_partitions=8)
        queries = orders(self.spark, 0, 100).select("id", "embedding")
        found = table.search(queries, "embedding", k=5)
        return f"{found.count():,} neighbours of 100 queries, in one job"

    def wal(self) -> str:
        """Let a stream upsert through the write-ahead log, and merge it into the table."""
        place = str(self.folder / "stock.lance")
        columns = [pa.field("id", pa.int64(), nullable=False), pa.field("left", pa.int64())]
        stock = lancelake.write_dataset(pa.schema(columns).empty_table(), place)
        stock.wal.initialize(buckets=2, key="id")
        inbox = str(self.folder / "stock-inbox")
        counts = self.spark.range(4000).select(
            (f.col("id") % 1000).alias("id"), f.col("id").alias("left")
        )
        counts.dropDuplicates(["id"]).repartition(1).write.mode("overwrite").parquet(inbox)
        run_to_end(
            self.spark.readStream.schema(counts.schema)
            .parquet(inbox)
            .writeStream.format("lance")
            .option("mode", "upsert")
            .option("checkpointLocation", str(self.folder / "stock-checkpoint")),
            place,
        )
        table = LanceTable.forPath(self.spark, place)
        before = lancelake.LanceDataset(place).wal.count_rows()
        table.mergeWal(flush=True)
        after = lancelake.LanceDataset(place).count_rows()
        return f"{before:,} rows in the log; {after:,} in the table after merging"

    def compact(self) -> str:
        """Join small files."""
        before = len(lancelake.LanceDataset(self.orders).get_fragments())
        LanceTable.forPath(self.spark, self.orders).optimize().executeCompaction()
        after = len(lancelake.LanceDataset(self.orders).get_fragments())
        return f"{before} fragments became {after}"

    def check(self) -> str:
        """Check the files, counts and ids of the newest version."""
        lancelake.LanceDataset(self.orders).validate()
        return "files, counts and ids of the newest version in order"

    def steps(self) -> list[tuple[str, Callable[[], str]]]:
        """Return the steps in their order."""
        return [
            ("ingest", self.ingest),
            ("merge late changes", self.merge),
            ("stream in", self.stream),
            ("change feed out", self.feed),
            ("computed column", self.compute),
            ("time travel", self.travel),
            ("text search", self.text),
            ("vector search", self.vectors),
            ("MemWAL stream", self.wal),
            ("compaction", self.compact),
            ("official Lance", self.official),
            ("check", self.check),
        ]


def run_to_end(writer: DataStreamWriter, place: str) -> None:
    """Run a stream until it has read what there is.

    Spark waits ten seconds for the process of a stream, and no setting changes that. On a busy
    machine the query may need to be started again: its checkpoint says where.
    """
    for attempt in range(1, ATTEMPTS + 1):
        query = writer.trigger(availableNow=True).start(place)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if LATE not in str(error) or attempt == ATTEMPTS:
                raise
        else:
            return


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
        vector.alias("embedding", metadata={"arrow.fixed-size-list.size": DIMENSIONS}),
    )
