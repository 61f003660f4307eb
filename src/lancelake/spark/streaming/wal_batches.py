"""Upsert streaming batches through the MemWAL, for queries in any output mode."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from lancelake.errors import TableNotFoundError
from lancelake.memwal.once import Unit
from lancelake.spark.maintenance.wal_jobs import merge_table_wal
from lancelake.spark.options.table_options import WRITE_OPTIONS, TableOptions, parse
from lancelake.spark.streaming.upserts import query_of
from lancelake.spark.writing.wal_rows import UPSERT_OPTIONS, Upsert, upsert_frame, upsert_of
from lancelake.spark.writing.write_plan import existing

BATCH_OPTIONS = (*WRITE_OPTIONS, *UPSERT_OPTIONS, "checkpointLocation", "mergeEvery", "queryName")


def upsert_batches(
    uri: str, *, txn_app_id: str | None = None, **options: object
) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` that upserts every batch exactly once.

    The table must have a MemWAL. A batch is one WAL entry in each region that it has rows of; it is
    identified by the query's id and its number.

    Args:
        uri: Path or URI of the table.
        txn_app_id: Replaces the query's id if Spark does not provide it.
        **options: Options of a write, and `deleteWhen`, `sequenceBy` and `mergeEvery`.

    Returns:
        The function.

    Examples:
        >>> from lancelake.spark import upsert_batches
        >>> table.initializeWal(buckets=1, key="id")
        >>> upsert = upsert_batches(path, txn_app_id="people")
        >>> upsert(spark.createDataFrame([(4, "di", 4.5)], table.toDF().schema), 0)
        >>> table.latest().count()
        4
    """
    given = {key: str(value) for key, value in options.items()}
    if txn_app_id is not None:
        given["txnAppId"] = txn_app_id
    return batches_into(parse({"mode": "upsert", **given, "path": uri}, BATCH_OPTIONS))


def batches_into(table: TableOptions) -> Callable[[DataFrame, int], None]:
    """Same as `upsert_batches`, for parsed options."""
    upsert = upsert_of(table) or Upsert()
    every = table.positive("mergeEvery")

    def upsert_batch(batch: DataFrame, number: int) -> None:
        base = existing(table)
        if base is None:
            raise TableNotFoundError(
                f"there is no table at {table.location.uri}",
                table=table.location.uri,
                action="Create it and its MemWAL before the stream starts.",
            )
        query = table.get("txnAppId") or query_of(batch)
        upsert_frame(batch, base, Unit(query=query, batch=number), upsert)
        newest = existing(table)
        if every is not None and (number + 1) % every == 0 and newest is not None:
            merge_table_wal(batch.sparkSession, newest, flush=True)

    return upsert_batch
