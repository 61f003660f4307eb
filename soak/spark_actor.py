"""What does a Spark application do in a round? Appends, merges, row commands, streams and scans.

A process of its own, as `soak.actor` is; its argument is the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import lancelake.pylance
from lancelake.spark import LanceTable, session
from soak.actor import Actor, prepared, text_of
from soak.moves import MOVES, Place, Told, where
from soak.table import BASE, plain, rows_for

_DECK = Counter(append=3, upsert=3, stream=3, update=2, delete=1, transfer=2, scan=2)
_STREAM_SCHEMA = "id bigint, v bigint, by string"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkPlace(Place):
    """A session, and a folder for what streams need."""

    spark: SparkSession
    folder: Path

    def frame(self, ds: Any, op: str, args: dict[str, Any]) -> Any:
        """Return new rows as a data frame."""
        return self.spark.createDataFrame(rows_for(ds.schema, args["ids"], args["value"], op))

    def table(self) -> LanceTable:
        """Return the table as Spark's users hold it."""
        return LanceTable.forPath(self.spark, self.uri, **(self.options or {}))


def append(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Told:
    """Add rows."""
    writer = place.frame(ds, op, args).write.format("lance").mode("append")
    writer.options(**(place.options or {})).save(place.uri)
    return None, {}


def upsert(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Told:
    """Merge rows by key."""
    merge = place.table().alias("t").merge(place.frame(ds, op, args).alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    return None, {}


def stream(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Told:
    """Let a stream bring rows, each file as a batch; what failed before comes first."""
    rows = rows_for(ds.schema.empty_table().select(BASE).schema, args["ids"], args["value"], op)
    source = place.folder / "source"
    source.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, place.folder / f"{op}.parquet")
    (place.folder / f"{op}.parquet").rename(source / f"{op}.parquet")
    frame = place.spark.readStream.schema(_STREAM_SCHEMA).option("maxFilesPerTrigger", 1)
    found = frame.parquet(str(source))
    for name in ds.schema.names:
        if name not in BASE:
            found = found.withColumn(name, sf.expr("id * 3 + 1"))
    writer = found.writeStream.format("lance").trigger(availableNow=True)
    checkpoint = str(place.folder / "checkpoint")
    options = {**(place.options or {}), "checkpointLocation": checkpoint}
    writer.options(**options).start(place.uri).awaitTermination()
    return None, {}


def update(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Told:  # noqa: ARG001
    """Add to the values of some rows."""
    values = {"v": f"v + {args['add']}", "by": f"'{op}'"}
    place.table().update(where(args["ids"]), values)
    return None, {}


def transfer(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Told:  # noqa: ARG001
    """Move a value from one account to another."""
    source, target, amount = args["source"], args["target"], args["amount"]
    value = f"CASE WHEN id = {source} THEN v - {amount} ELSE v + {amount} END"
    place.table().update(where([source, target]), {"v": value, "by": f"'{op}'"})
    return None, {}


def delete(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Told:  # noqa: ARG001
    """Delete rows by key."""
    place.table().delete(where(args["ids"]))
    return None, {}


def scan(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Told:  # noqa: ARG001
    """Read a version with Spark."""
    reader = place.spark.read.format("lance").option("version", ds.version)
    found = reader.options(**(place.options or {})).load(place.uri).toArrow()
    rows, columns = plain(found)
    place.journal.read(ds.version, rows, columns, "spark")
    return ds.version, {}


_MOVES = {
    **MOVES,
    **{f.__name__: f for f in (append, upsert, stream, update, transfer, delete, scan)},
}


class SparkActor(Actor):
    """One Spark application."""

    deck = _DECK
    moves: Any = _MOVES  # they take the place of a Spark session

    def verdict(self, kind: str, error: Exception) -> str:
        """A batch that failed comes again with the next stream."""
        if kind == "stream" or "UncertainCommit" in text_of(error):
            return "unknown"
        return "fail"


def main() -> None:
    """Play the part that the argument tells."""
    part, journal = prepared()
    folder = Path(part.log).parent / f"spark-{part.slot}"
    conf = {
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": 2,
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    spark = session("local[1]", root=str(folder / "warehouse"), **conf)
    place = SparkPlace(
        lance=lancelake.pylance,
        uri=part.uri,
        options=part.options,
        journal=journal,
        spark=spark,
        folder=folder,
    )
    try:
        # The first job starts what all jobs need.
        place.table().toDF().count()
        SparkActor(part, place).run()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
