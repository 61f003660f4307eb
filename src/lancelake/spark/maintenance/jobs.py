"""Maintenance jobs on Spark: compact, clean up, optimize, check and repair."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from pyspark.sql import SparkSession

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError
from lancelake.format.column_path import split_list
from lancelake.format.durations import parse_duration
from lancelake.memwal import check as wal_check
from lancelake.scan.request import Ordering
from lancelake.spark.catalog.result_rows import FLAG, TEXT, WHOLE, ResultRow, row_schema
from lancelake.spark.jobs.engine import SparkEngine, described
from lancelake.spark.maintenance.index_jobs import index_maintenance
from lancelake.spark.reading.text_conditions import fragments_where
from lancelake.table.cleanup.policy import CleanupPolicy
from lancelake.table.cleanup.run import CleanupRun, clean_up
from lancelake.table.compact.clustering import table_settings
from lancelake.table.compact.run import CompactionRun, compact
from lancelake.table.optimize import OptimizeRun, optimize
from lancelake.table.repair.options import RepairOptions
from lancelake.table.repair.plan import plan as plan_repair
from lancelake.table.repair.run import apply

COMPACTED = row_schema(
    version=WHOLE,
    fragments_removed=WHOLE,
    fragments_added=WHOLE,
    files_removed=WHOLE,
    files_added=WHOLE,
    bytes_removed=WHOLE,
    bytes_added=WHOLE,
)
CLEANED = row_schema(
    versions_removed=WHOLE,
    files_removed=WHOLE,
    bytes_removed=WHOLE,
    files_kept=WHOLE,
    bytes_kept=WHOLE,
    kept_until=TEXT,
    is_dry_run=FLAG,
)
OPTIMIZED = row_schema(
    version=WHOLE,
    fragments_removed=WHOLE,
    fragments_added=WHOLE,
    versions_removed=WHOLE,
    files_removed=WHOLE,
    not_done=TEXT,
    is_dry_run=FLAG,
)
CHECKED = row_schema(
    severity=TEXT,
    code=TEXT,
    message=TEXT,
    version=WHOLE,
    branch=TEXT,
    path=TEXT,
    hint=TEXT,
)
REPAIRED = row_schema(action=TEXT, what=TEXT, branch=TEXT, advice=TEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest:
    """Options of a compaction; unset options are taken from the table's config."""

    where: str | None = None
    """Rewrite only fragments with a row that matches this condition, in Spark SQL."""

    target_rows: int | None = None
    sort_by: tuple[Ordering, ...] = ()
    z_order_by: tuple[str, ...] = ()


def compact_table(spark: SparkSession, base: Snapshot, request: CompactionRequest) -> ResultRow:
    """Rewrite fragments worth it on the executors, and commit."""
    engine = SparkEngine(spark)
    others = None
    if request.where is not None:
        found = fragments_where(spark, base, request.where)
        others = frozenset(f.id for f in base.manifest.fragments if f.id not in found)
    settings = table_settings(
        base,
        target_rows_per_fragment=request.target_rows,
        sort_by=request.sort_by,
        z_order_by=request.z_order_by,
        excluded_fragment_ids=others,
    )
    done = compact(base, settings, CompactionRun(engine=engine))
    names = COMPACTED.fieldNames()[1:]
    counts = {name: getattr(done.metrics, name) for name in names}
    return {"version": done.snapshot.version, **counts}


def clean_table(
    spark: SparkSession, base: Snapshot, policy: CleanupPolicy, *, dry_run: bool
) -> ResultRow:
    """Remove versions according to a policy, and files that are no longer referenced.

    Unreferenced files that may belong to a write in progress are kept until the given time.
    """
    run = CleanupRun(engine=SparkEngine(spark))
    with described(spark, f"clean up {base.location.uri}"):
        done = clean_up(base, policy, dry_run=dry_run, run=run)
    return {
        "versions_removed": len(done.versions),
        "files_removed": done.files_removed,
        "bytes_removed": done.bytes_removed,
        "files_kept": len(done.waiting),
        "bytes_kept": sum(file.size_bytes for file in done.waiting),
        "kept_until": _time_text(done.waiting_until_ns),
        "is_dry_run": dry_run,
    }


def _time_text(time_ns: int | None) -> str | None:
    """Return a time in ISO 8601, in UTC and whole seconds."""
    if time_ns is None:
        return None
    return datetime.fromtimestamp(time_ns // 10**9, UTC).isoformat()


def optimize_table(spark: SparkSession, base: Snapshot, *, dry_run: bool) -> ResultRow:
    """Compact and clean up if worthwhile, according to the table's config."""
    with described(spark, f"optimize {base.location.uri}"):
        merging, refreshing = index_maintenance(spark)
        run = OptimizeRun(
            engine=SparkEngine(spark),
            before_compaction=(merging,),
            index_maintenance=(refreshing,),
        )
        done = optimize(base, dry_run=dry_run, run=run)
    compaction, cleanup = done.compaction, done.cleanup
    reasons = [*done.skipped, *([] if done.conflict is None else [done.conflict])]
    return {
        "version": done.snapshot.version,
        "fragments_removed": 0 if compaction is None else compaction.fragments_removed,
        "fragments_added": 0 if compaction is None else compaction.fragments_added,
        "versions_removed": 0 if cleanup is None else len(cleanup.versions),
        "files_removed": 0 if cleanup is None else cleanup.files_removed,
        "not_done": "; ".join(reasons) or None,
        "is_dry_run": dry_run,
    }


def check_table(
    spark: SparkSession, base: Snapshot, *, data: bool, versions: str
) -> list[ResultRow]:
    """Return the findings about a table; with `data`, executors read every value."""
    if versions not in ("all", "latest"):
        raise InvalidRequestError(f"versions must be all or latest, not {versions!r}")
    chosen: Literal["all", "latest"] = "all" if versions == "all" else "latest"
    with described(spark, f"check {base.location.uri}"):
        engine = SparkEngine(spark)
        found = list(
            wal_check.check_table(base.main_location, data=data, versions=chosen, engine=engine)
        )
    names = CHECKED.fieldNames()[1:]
    return [
        {"severity": f.severity.value, **{name: getattr(f, name) for name in names}} for f in found
    ]


def repair_table(base: Snapshot, options: RepairOptions, *, dry_run: bool) -> list[ResultRow]:
    """Repair a table; the rows list what was done, or would be, and what remains."""
    planned = plan_repair(base.main_location, options)
    done = planned if dry_run else apply(planned, options).done
    action = "would repair" if dry_run else "repaired"
    rows: list[ResultRow] = [
        {"action": action, "what": step, "branch": branch, "advice": None}
        for branch, step in done.steps()
    ]
    rows += [
        {
            "action": "left",
            "what": left.finding.message,
            "branch": left.finding.branch,
            "advice": left.advice,
        }
        for left in done.left
    ]
    return rows


def age_of(text: str) -> timedelta:
    """Parse an age such as `7days`."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidRequestError(str(error), found=text) from error


def orderings(text: str) -> tuple[Ordering, ...]:
    """Parse columns to sort by: `day, amount DESC`."""
    found: list[Ordering] = []
    for part in split_list(text):
        column, _, direction = part.rpartition(" ")
        if direction.upper() not in ("ASC", "DESC") or not column:
            column, direction = part, "ASC"
        if any(" " in bare for bare in column.strip().split("`")[::2]):
            raise InvalidRequestError(f"{part!r} is not a sort column such as day DESC")
        found.append(Ordering(column=column.strip(), ascending=direction.upper() == "ASC"))
    return tuple(found)
