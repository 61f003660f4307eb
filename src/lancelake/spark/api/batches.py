"""Functions for `foreachBatch`, which write every batch exactly once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lancelake.core.values.metadata import quoted_name
from lancelake.core.values.writes import Clauses, InsertAll, OnceOnly, UpdateAll, landed
from lancelake.errors import InvalidRequestError
from lancelake.spark.connector.row_commands import MergeRequest, execute_merge
from lancelake.spark.jobs.write_plan import SaveMode, plan_write, write_planned
from lancelake.spark.streaming.upserts import BATCH_OPTIONS, batches_into, query_of
from lancelake.spark.values.options import WRITE_OPTIONS, as_texts, parse


def merge_batches(
    uri: str, keys: Sequence[str], *, txn_app_id: str | None = None, **options: object
) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` that merges every batch by key exactly once.

    The first batch creates the table if it does not exist. Spark supports update mode, which
    queries with aggregates need, only in this form. A batch is identified by the query's id and its
    number.

    Args:
        uri: Path or URI of the table.
        keys: Key columns.
        txn_app_id: Replaces the query's id if Spark does not provide it.
        **options: Options of a write.

    Returns:
        The function.

    Raises:
        InvalidRequestError: No key is given.

    Examples:
        >>> from lancelake.spark import merge_batches
        >>> counts = f"{folder}/counts.lance"
        >>> merge = merge_batches(counts, ["id"], txn_app_id="counts")
        >>> merge(spark.createDataFrame([(1, 5)], "id long, n long"), 0)
        >>> merge(spark.createDataFrame([(1, 7), (2, 1)], "id long, n long"), 1)
        >>> [tuple(row) for row in LanceTable.forPath(spark, counts).toDF().orderBy("id").collect()]
        [(1, 7), (2, 1)]
    """
    if not keys:
        raise InvalidRequestError("a merge needs at least one key column")
    table = parse({**as_texts(options), "path": uri}, WRITE_OPTIONS)

    def merge_batch(batch: DataFrame, number: int) -> None:
        once = OnceOnly(app_id=txn_app_id or query_of(batch), version=number)
        target = table.open_existing()
        if target is None:
            first = plan_write(table, batch.schema, SaveMode.ERROR)
            write_planned(batch, None if first is None else first.adapt(once=once))
            return
        if landed(target.snapshot, once) is None and not batch.isEmpty():
            execute_merge(target.snapshot, _by_keys(batch, keys), once)

    return merge_batch


def _by_keys(batch: DataFrame, keys: Sequence[str]) -> MergeRequest:
    names = [quoted_name(key) for key in keys]
    equal = [f.col(f"target.{name}") == f.col(f"source.{name}") for name in names]
    return MergeRequest(
        source=batch,
        condition=reduce(and_, equal),
        clauses=Clauses(matched=(UpdateAll(),), not_matched=(InsertAll(),)),
        keys=tuple(keys),
    )


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
    given = as_texts(options)
    if txn_app_id is not None:
        given["txnAppId"] = txn_app_id
    return batches_into(parse({"mode": "upsert", **given, "path": uri}, BATCH_OPTIONS))
