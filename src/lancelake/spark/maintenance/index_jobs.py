"""Indices of a table built, brought up to date and dropped by Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.spark.catalog.result_rows import TEXT, WHOLE, ResultRow, row_schema
from lancelake.spark.jobs.engine import described
from lancelake.spark.maintenance import index_build
from lancelake.spark.maintenance.index_build import BuiltBySpark
from lancelake.table.index.build import IndexRun, create_index
from lancelake.table.index.drop import drop_index
from lancelake.table.index.refresh import RefreshOptions, refresh_indices
from lancelake.table.index.request import IndexRequest
from lancelake.table.index.statistics import coverage_named
from lancelake.table.optimize.index_maintenance import ScalarIndexMaintenance, SegmentMerging

INDEXED = row_schema(
    version=WHOLE, name=TEXT, kind=TEXT, rows_indexed=WHOLE, rows_not_indexed=WHOLE
)
DROPPED = t.StructType(INDEXED.fields[:2])


def index_table(spark: SparkSession, base: Snapshot, request: IndexRequest) -> ResultRow:
    """Build an index, on executors if it is large, and commit it."""
    with described(spark, f"index {request.column} of {base.location.uri}"):
        made = create_index(base, request, index_run(spark))
    before = {index.uuid for index in base.indices}
    name = next(index.name for index in made.indices if index.uuid not in before)
    return _row(made, name)


def refresh_table(
    spark: SparkSession, base: Snapshot, names: Sequence[str] | None, *, rebuild: bool
) -> list[ResultRow]:
    """Bring indices up to date; rows say how much each covers now."""
    chosen = None if names is None else tuple(names)
    options = replace(_refreshing(), index_names=chosen, retrain=rebuild)
    with described(spark, f"refresh indices of {base.location.uri}"):
        done = refresh_indices(base, options, index_run(spark))
    return [_row(done.snapshot, name) for name in done.names]


def drop_table_index(base: Snapshot, name: str) -> ResultRow:
    """Drop an index."""
    return {"version": drop_index(base, name).version, "name": name}


def parameters_in(text: str | None) -> dict[str, Any]:
    """Understand parameters of a kind, written as a JSON object."""
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidRequestError(f"{text!r} is not JSON") from error
    if not isinstance(found, dict):
        raise InvalidRequestError(f"{text!r} is not a JSON object")
    return found


def index_maintenance(
    spark: SparkSession,
) -> tuple[SegmentMerging, ScalarIndexMaintenance]:
    """Return the index maintenance of an optimized table, before and after its compaction."""
    options, how = _refreshing(), index_run(spark)
    refreshing = ScalarIndexMaintenance(options=options, how=how)
    return SegmentMerging(options=options, how=how), refreshing


def index_run(spark: SparkSession) -> IndexRun:
    """Return how indices are built: on executors if they are large."""
    builder = BuiltBySpark(spark)
    most = index_build.EMBEDDED_ROWS
    return IndexRun(builder=builder, begun=builder.begun, merged_rows=most)


def _refreshing() -> RefreshOptions:
    """Leave large segments as they are: to merge them takes as long as to build them."""
    return RefreshOptions(large_rows=index_build.EMBEDDED_ROWS)


def _row(at: Snapshot, name: str) -> ResultRow:
    found = coverage_named(at, name)
    return {
        "version": at.version,
        "name": name,
        "kind": found.kind,
        "rows_indexed": found.rows,
        "rows_not_indexed": found.unindexed_rows,
    }
