"""Execute each operation with Spark: with DataFrames, and with SQL on local tables.

Every other operation on a local table is a statement of SQL; those say no counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lancelake.spark import LanceTable
from soak.moves import MOVES, Outcome, Place, where
from soak.table import BASE, plain, rows_for

_STREAM_SCHEMA = "id bigint, v bigint, by string"
_ARRIVING = "arriving"
_FEED = ("_change_type", "_commit_version", "id", "v", "by")


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

    def load(self, **options: Any) -> DataFrame:
        """Return rows of the table."""
        return self.table().toDF(**options)

    def takes_sql(self, op: str) -> bool:
        """Tell whether an operation is written in SQL."""
        return not self.options and int(op.rpartition(".")[2]) % 2 == 0

    def sql(self, statement: str) -> Outcome:
        """Run a statement, in which `{t}` stands for the table."""
        self.spark.sql(statement.replace("{t}", f"lance.`{self.uri}`"))
        return None, {}


def append(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Outcome:
    """Add rows."""
    frame = place.frame(ds, op, args)
    if place.takes_sql(op):
        frame.createOrReplaceTempView(_ARRIVING)
        return place.sql(f"INSERT INTO {{t}} SELECT * FROM {_ARRIVING}")
    writer = frame.write.format("lance").mode("append")
    writer.options(**(place.options or {})).save(place.uri)
    return None, {}


def upsert(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Outcome:
    """Merge rows by key."""
    return _merge(place, place.frame(ds, op, args), op, updates=True)


def insert(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Outcome:
    """Merge rows whose keys are not there."""
    return _merge(place, place.frame(ds, op, args), op, updates=False)


def _merge(place: SparkPlace, frame: DataFrame, op: str, *, updates: bool) -> Outcome:
    if place.takes_sql(op):
        frame.createOrReplaceTempView(_ARRIVING)
        matched = "WHEN MATCHED THEN UPDATE SET * " if updates else ""
        return place.sql(
            f"MERGE INTO {{t}} t USING {_ARRIVING} s ON t.id = s.id "
            f"{matched}WHEN NOT MATCHED THEN INSERT *"
        )
    merge = place.table().alias("t").merge(frame.alias("s"), "t.id = s.id")
    if updates:
        merge = merge.whenMatchedUpdateAll()
    result = _first(merge.whenNotMatchedInsertAll().execute())
    inserted, updated = result["num_inserted_rows"], result["num_updated_rows"]
    return None, {"inserted": inserted, "updated": updated} if updates else {"rows": inserted}


def stream(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Outcome:
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


def update(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Add to the values of some rows."""
    return _update(place, op, args["ids"], f"v + {args['add']}")


def transfer(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Move a value from one account to another."""
    source, target, amount = args["source"], args["target"], args["amount"]
    value = f"CASE WHEN id = {source} THEN v - {amount} ELSE v + {amount} END"
    return _update(place, op, [source, target], value)


def _update(place: SparkPlace, op: str, ids: Iterable[int], value: str) -> Outcome:
    if place.takes_sql(op):
        return place.sql(f"UPDATE {{t}} SET v = {value}, by = '{op}' WHERE {where(ids)}")
    result = _first(place.table().update(where(ids), {"v": value, "by": f"'{op}'"}))
    return None, {"rows": result["num_affected_rows"]}


def delete(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Delete rows by key."""
    if place.takes_sql(op):
        return place.sql(f"DELETE FROM {{t}} WHERE {where(args['ids'])}")
    result = _first(place.table().delete(where(args["ids"])))
    return None, {"rows": result["num_affected_rows"]}


def compact(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Write fragments together, every other time in the order of the keys."""
    optimize = place.table().optimize()
    is_sorted = int(op.rpartition(".")[2]) % 2 == 0
    _first(optimize.executeSortBy("id") if is_sorted else optimize.executeCompaction())
    return None, {}


def scan(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Read the newest version."""
    _read(place, ds.version, "spark")
    return ds.version, {}


def pinned(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Read a recent version."""
    _read(place, args["version"], "spark pinned")
    return args["version"], {}


def changes(place: SparkPlace, ds: Any, op: str, args: dict[str, Any]) -> Outcome:  # noqa: ARG001
    """Ask the change feed what happened."""
    begin, end = args["begin"], args["end"]
    if begin < end:
        # Spark counts from the first version whose changes are included.
        found = place.table().changes(begin, end).select(*_FEED).toArrow()
        columns = [found[name].to_pylist() for name in _FEED]
        place.journal.feed(begin, end, [list(row) for row in zip(*columns, strict=True)])
    return None, {}


def _read(place: SparkPlace, version: int, how: str) -> None:
    rows, columns = plain(place.load(version=version).toArrow())
    place.journal.read(version, rows, columns, how)


def _first(answer: DataFrame) -> dict[str, Any]:
    found: dict[str, Any] = answer.toArrow().to_pylist()[0]
    return found


SPARK_MOVES = {
    **MOVES,
    **{
        move.__name__: move
        for move in (
            append,
            upsert,
            insert,
            stream,
            update,
            transfer,
            delete,
            compact,
            scan,
            pinned,
            changes,
        )
    },
}
