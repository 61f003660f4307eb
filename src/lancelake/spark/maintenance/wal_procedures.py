"""MemWAL procedures: `CALL lance.system.merge_wal(...)`, `init_wal`, `wal_status` and others."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lancelake.format.column_path import split_list
from lancelake.spark.catalog.procedures import Arguments, Parameter, Results, known
from lancelake.spark.catalog.result_rows import FLAG, TEXT, WHOLE, ResultRow
from lancelake.spark.maintenance import wal_jobs
from lancelake.spark.maintenance.jobs import age_of
from lancelake.spark.options.table_options import TableOptions, open_version


def _initialize(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:  # noqa: ARG001
    key = None if given["key"] is None else split_list(given["key"])
    return wal_jobs.initialize_table_wal(open_version(table), given["buckets"], key)


def _merge(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:
    return wal_jobs.merge_table_wal(spark, open_version(table), flush=given["flush"])


def _status(spark: SparkSession, table: TableOptions, given: Arguments) -> Results:  # noqa: ARG001
    return wal_jobs.wal_status_rows(open_version(table))


def _collect(spark: SparkSession, table: TableOptions, given: Arguments) -> Results:  # noqa: ARG001
    age = None if given["older_than"] is None else age_of(given["older_than"])
    return wal_jobs.collect_table_wal(open_version(table), age, dry_run=given["dry_run"])


def add_wal_procedures() -> None:
    """Register the procedures."""
    known(
        "init_wal",
        "adds a MemWAL to a table, for durable upserts in milliseconds",
        wal_jobs.INITIALIZED,
        _initialize,
        Parameter(name="buckets", dtype=WHOLE, default="8"),
        Parameter(name="key", dtype=TEXT, default="NULL"),
    )
    known(
        "merge_wal",
        "merges flushed rows of the MemWAL into the table; with flush, all rows",
        wal_jobs.MERGED,
        _merge,
        Parameter(name="flush", dtype=FLAG, default="false"),
    )
    known("wal_status", "lists the regions of the MemWAL", wal_jobs.STATUS, _status)
    known(
        "collect_wal",
        "removes merged generations and flushed entries of the MemWAL",
        wal_jobs.COLLECTED,
        _collect,
        Parameter(name="older_than", dtype=TEXT, default="NULL"),
        Parameter(name="dry_run", dtype=FLAG, default="false"),
    )
