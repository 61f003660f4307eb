"""Merge streaming batches by key, for queries in update mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lancelake.errors import InvalidRequestError
from lancelake.format.column_path import quoted_name
from lancelake.spark.jvm.gateway import is_classic
from lancelake.spark.merge.execute import MergeRequest, execute_merge
from lancelake.spark.options.table_options import WRITE_OPTIONS, parse
from lancelake.spark.writing.write_plan import SaveMode, existing, plan_write, write_planned
from lancelake.table.idempotent import OnceOnly, landed
from lancelake.table.merge.clauses import Clauses, InsertAll, UpdateAll

_QUERY = "sql.streaming.queryId"


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
    given = {key: str(value) for key, value in options.items()}
    table = parse({**given, "path": uri}, WRITE_OPTIONS)

    def merge_batch(batch: DataFrame, number: int) -> None:
        once = OnceOnly(app_id=txn_app_id or query_of(batch), version=number)
        base = existing(table)
        if base is None:
            first = plan_write(table, batch.schema, SaveMode.ERROR)
            write_planned(batch, None if first is None else replace(first, once=once))
            return
        if landed(base, once) is None and not batch.isEmpty():
            execute_merge(base, _by_keys(batch, keys), once)

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


def query_of(batch: DataFrame) -> str:
    """Return the id of the query of a streaming batch."""
    session = batch.sparkSession
    # The process of a batch on Spark Connect does not know the query.
    found = session.sparkContext.getLocalProperty(_QUERY) if is_classic(session) else None
    if not found:
        raise InvalidRequestError(
            "Spark did not provide the id of the query of a batch",
            action="Set txn_app_id to a name that only this query uses.",
        )
    return str(found)
