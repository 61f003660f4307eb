"""Indices of tables: methods of `LanceTable`, and their procedures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.core.table import Table
from lancelake.core.values.indices import (
    IndexRequest,
    IndexRun,
    RefreshOptions,
    ScalarKind,
    TableIndexParameters,
    VectorKind,
)
from lancelake.core.values.metadata import Snapshot
from lancelake.core.values.reports import ScalarIndexMaintenance, SegmentMerging
from lancelake.errors import InvalidRequestError
from lancelake.spark.jobs import index_build
from lancelake.spark.jobs.engine import describe_jobs
from lancelake.spark.jobs.index_build import BuiltBySpark
from lancelake.spark.sql.procedures import (
    TEXT,
    WHOLE,
    ResultRow,
    SparkTable,
    TableAccess,
    procedure,
    row_schema,
)

_INDEXED = row_schema(
    version=WHOLE, name=TEXT, kind=TEXT, rows_indexed=WHOLE, rows_not_indexed=WHOLE
)


@procedure("builds an index of a column", _INDEXED)
def create_index(
    table: SparkTable,
    column: str,
    kind: str = "BTREE",
    name: str | None = None,
    *,
    replace: bool = False,
    parameters: str | Mapping[str, Any] | None = None,
) -> ResultRow:
    """Build an index, on executors if it is large, and commit it."""
    if not isinstance(parameters, Mapping):
        parameters = parse_parameters(parameters)
    request = IndexRequest(
        column=column, kind=kind, name=name, replace=replace, parameters=parameters
    )
    base = table.open()
    with describe_jobs(table.spark, f"index {column} of {base.location.uri}"):
        after = base.indices.create(request, index_run(table.spark))
    before = {index.uuid for index in base.snapshot.indices}
    return _row(after, next(index.name for index in after.indices if index.uuid not in before))


@procedure("adds rows that are not indexed yet to an index, or to all", _INDEXED)
def refresh_index(
    table: SparkTable, name: str | None = None, *, rebuild: bool = False
) -> list[ResultRow]:
    """Bring indices up to date; rows say how much each covers now."""
    names = None if name is None else (name,)
    options = replace(_refreshing(), index_names=names, retrain=rebuild)
    base = table.open()
    with describe_jobs(table.spark, f"refresh indices of {base.location.uri}"):
        refreshed = base.indices.refresh(options, index_run(table.spark))
    refreshed.raise_failure()
    return [_row(refreshed.snapshot, each) for each in refreshed.names]


@procedure("drops an index", t.StructType(_INDEXED.fields[:2]))
def drop_index(table: SparkTable, name: str) -> ResultRow:
    """Drop an index."""
    return {"version": table.open().indices.drop(name).version, "name": name}


def parse_parameters(text: str | None) -> dict[str, Any]:
    """Parse parameters of a kind, written as a JSON object."""
    if not text:
        return {}
    try:
        parameters = json.loads(text)
    except ValueError as error:
        raise InvalidRequestError(f"{text!r} is not JSON") from error
    if not isinstance(parameters, dict):
        raise InvalidRequestError(f"{text!r} is not a JSON object")
    return parameters


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
    coverage = Table(at).indices.coverage_named(name)
    return {
        "version": at.version,
        "name": name,
        "kind": coverage.kind,
        "rows_indexed": coverage.rows,
        "rows_not_indexed": coverage.unindexed_rows,
    }


class TableIndexes(TableAccess):
    """Methods that list, build, refresh and drop the indices of a table."""

    def indexes(self) -> DataFrame:
        """Return the segments of all indices, and how many rows each covers.

        Returns:
            One row per segment.

        Examples:
            >>> created = table.createIndex("id")
            >>> [row.name for row in table.indexes().collect()]
            ['id_idx']
        """
        return self._facts("indices")

    def createIndex(
        self,
        column: str,
        kind: ScalarKind | VectorKind | str = "BTREE",
        name: str | None = None,
        *,
        replace: bool = False,
        **parameters: Unpack[TableIndexParameters],
    ) -> DataFrame:
        """Build an index of a column, on executors if it is large.

        Args:
            column: The column, or the path of a struct field.
            kind: BTREE, BITMAP, LABEL_LIST, ZONEMAP, BLOOMFILTER, NGRAM, INVERTED, or a kind of
                vector index such as IVF_PQ.
            name: Name of the index; by default the column's, with `_idx`.
            replace: Replace an index of the same name; otherwise it is an error.
            **parameters: Parameters of the kind, such as `num_partitions`.

        Returns:
            One row: what the index covers.

        Raises:
            AlreadyExistsError: There is an index of this name, and `replace` is False.
            ColumnTypeError: The kind does not support the type of the column.

        Examples:
            >>> table.createIndex("name", "BITMAP").count()
            1
        """
        return self._show(create_index, column, kind, name, replace=replace, parameters=parameters)

    def refreshIndex(self, name: str | None = None, rebuild: bool = False) -> DataFrame:
        """Add rows that are not indexed yet to an index, or to all.

        Args:
            name: The index; by default all.
            rebuild: Build the index again.

        Returns:
            One row for each index that changed.

        Raises:
            IndexNotFoundError: The table has no such index.

        Examples:
            >>> created = table.createIndex("id")
            >>> table.refreshIndex().count()
            0
        """
        return self._show(refresh_index, name, rebuild=rebuild)

    def dropIndex(self, name: str) -> None:
        """Drop an index.

        Args:
            name: The name of the index.

        Raises:
            IndexNotFoundError: The table has no such index.

        Examples:
            >>> created = table.createIndex("id")
            >>> table.dropIndex("id_idx")
            >>> table.indexes().count()
            0
        """
        self._table.open().indices.drop(name)
