"""Upserts of a stream's batches."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from lancelake.core.values.wal import Unit
from lancelake.errors import InvalidRequestError, TableNotFoundError
from lancelake.spark.jobs.wal_rows import UPSERT_OPTIONS, Upsert, upsert_frame, upsert_of
from lancelake.spark.jvm.gateway import is_classic
from lancelake.spark.sql.wal_methods import merge_if_due
from lancelake.spark.values.options import WRITE_OPTIONS, TableOptions

_QUERY = "sql.streaming.queryId"


def query_of(batch: DataFrame) -> str:
    """Return the id of the query of a streaming batch."""
    session = batch.sparkSession
    # The process of a batch on Spark Connect does not know the query.
    query = session.sparkContext.getLocalProperty(_QUERY) if is_classic(session) else None
    if not query:
        raise InvalidRequestError(
            "Spark did not provide the id of the query of a batch",
            action="Set txn_app_id to a name that only this query uses.",
        )
    return str(query)


BATCH_OPTIONS = (*WRITE_OPTIONS, *UPSERT_OPTIONS, "checkpointLocation", "mergeEvery", "queryName")


def batches_into(table: TableOptions) -> Callable[[DataFrame, int], None]:
    """Same as `upsert_batches`, for parsed options."""
    upsert = upsert_of(table) or Upsert()

    def upsert_batch(batch: DataFrame, number: int) -> None:
        target = table.open_existing()
        if target is None:
            raise TableNotFoundError(
                f"there is no table at {table.location.uri}",
                table=table.location.uri,
                action="Create it and its MemWAL before the stream starts.",
            )
        query = table.get("txnAppId") or query_of(batch)
        upsert_frame(batch, target.snapshot, Unit(query=query, batch=number), upsert)
        merge_if_due(batch.sparkSession, table, number)

    return upsert_batch
