"""Maintenance procedures: `CALL lance.system.compact(...)`, `cleanup`, `optimize` and others."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from lancelake.format.column_path import split_list
from lancelake.spark.catalog.procedures import Arguments, Parameter, Results, known
from lancelake.spark.catalog.result_rows import FLAG, TEXT, WHOLE, ResultRow
from lancelake.spark.maintenance import index_jobs, jobs
from lancelake.spark.maintenance.jobs import CompactionRequest
from lancelake.spark.options.table_options import TableOptions, open_version
from lancelake.table.cleanup.policy import CleanupPolicy
from lancelake.table.index.request import IndexRequest
from lancelake.table.repair.options import RepairOptions


def _compact(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:
    request = CompactionRequest(
        where=given["where"],
        target_rows=given["target_rows"],
        sort_by=jobs.orderings(given["sort_by"] or ""),
        z_order_by=split_list(given["z_order_by"] or ""),
    )
    return jobs.compact_table(spark, open_version(table), request)


def _cleanup(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:
    older = given["older_than"]
    age = None if older is None else jobs.age_of(older)
    policy = CleanupPolicy(older_than=age, retain_versions=given["retain_versions"])
    return jobs.clean_table(spark, open_version(table), policy, dry_run=given["dry_run"])


def _optimize(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:
    return jobs.optimize_table(spark, open_version(table), dry_run=given["dry_run"])


def _check(spark: SparkSession, table: TableOptions, given: Arguments) -> Results:
    base = open_version(table)
    return jobs.check_table(spark, base, data=given["data"], versions=given["versions"])


def _repair(spark: SparkSession, table: TableOptions, given: Arguments) -> Results:  # noqa: ARG001
    options = RepairOptions(
        data=given["data"],
        drop_lost=given["drop_lost"],
        replace_invalid_utf8=given["replace_invalid_utf8"],
    )
    return jobs.repair_table(open_version(table), options, dry_run=given["dry_run"])


def _create_index(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:
    request = IndexRequest(
        column=given["column"],
        kind=given["kind"],
        name=given["name"],
        replace=given["replace"],
        parameters=index_jobs.parameters_in(given["parameters"]),
    )
    return index_jobs.index_table(spark, open_version(table), request)


def _refresh_index(spark: SparkSession, table: TableOptions, given: Arguments) -> Results:
    names = None if given["name"] is None else [given["name"]]
    base = open_version(table)
    return index_jobs.refresh_table(spark, base, names, rebuild=given["rebuild"])


def _drop_index(spark: SparkSession, table: TableOptions, given: Arguments) -> ResultRow:  # noqa: ARG001
    return index_jobs.drop_table_index(open_version(table), given["name"])


def _optional(name: str, dtype: t.DataType = TEXT, default: str = "NULL") -> Parameter:
    return Parameter(name=name, dtype=dtype, default=default)


_DRY_RUN = _optional("dry_run", FLAG, "false")
_DATA = _optional("data", FLAG, "false")


def add_maintenance_procedures() -> None:
    """Register the maintenance procedures."""
    known(
        "compact",
        "rewrites small fragments and those with deleted rows, or sorts all rows",
        jobs.COMPACTED,
        _compact,
        _optional("target_rows", WHOLE),
        _optional("where"),
        _optional("sort_by"),
        _optional("z_order_by"),
    )
    known(
        "cleanup",
        "removes old versions and files that are no longer referenced",
        jobs.CLEANED,
        _cleanup,
        _optional("older_than"),
        _optional("retain_versions", WHOLE),
        _DRY_RUN,
    )
    known(
        "optimize",
        "compacts, refreshes indices and cleans up if worthwhile",
        jobs.OPTIMIZED,
        _optimize,
        _DRY_RUN,
    )
    versions = _optional("versions", TEXT, "'latest'")
    known("check", "lists inconsistencies", jobs.CHECKED, _check, _DATA, versions)
    known(
        "repair",
        "repairs inconsistencies where possible",
        jobs.REPAIRED,
        _repair,
        _DRY_RUN,
        _optional("drop_lost", FLAG, "false"),
        _DATA,
        _optional("replace_invalid_utf8", FLAG, "false"),
    )
    _add_index_procedures()


def _add_index_procedures() -> None:
    known(
        "create_index",
        "builds an index of a column",
        index_jobs.INDEXED,
        _create_index,
        Parameter(name="column", dtype=TEXT),
        _optional("kind", TEXT, "'BTREE'"),
        _optional("name"),
        _optional("replace", FLAG, "false"),
        _optional("parameters"),
    )
    known(
        "refresh_index",
        "adds rows that are not indexed yet to an index, or to all",
        index_jobs.INDEXED,
        _refresh_index,
        _optional("name"),
        _optional("rebuild", FLAG, "false"),
    )
    known(
        "drop_index",
        "drops an index",
        index_jobs.DROPPED,
        _drop_index,
        Parameter(name="name", dtype=TEXT),
    )
