"""Metadata and maintenance of tables: methods of `LanceTable`, and their procedures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from pyspark.sql import DataFrame

from lancelake.core.table_place import TablePlace
from lancelake.core.values.metadata import parse_duration, split_list
from lancelake.core.values.reads import Ordering
from lancelake.core.values.reports import (
    CleanupPolicy,
    CompactionRun,
    OptimizeRun,
    RepairOptions,
)
from lancelake.errors import InvalidRequestError
from lancelake.spark.jobs.engine import describe_jobs
from lancelake.spark.jobs.target_frame import fragments_where
from lancelake.spark.sql.index_methods import index_maintenance
from lancelake.spark.sql.procedures import (
    FLAG,
    TEXT,
    WHOLE,
    ResultRow,
    SparkTable,
    TableAccess,
    procedure,
    row_schema,
)

_COUNTS = {
    f"{what}_{change}": WHOLE
    for what in ("fragments", "files", "bytes")
    for change in ("removed", "added")
}
_COMPACTED = row_schema(version=WHOLE, **_COUNTS)


@procedure("rewrites small fragments and those with deleted rows, or sorts all rows", _COMPACTED)
def compact(
    table: SparkTable,
    target_rows: int | None = None,
    where: str | None = None,
    sort_by: str | Sequence[Ordering] | None = None,
    z_order_by: str | Sequence[str] | None = None,
) -> ResultRow:
    """Rewrite fragments worth it on the executors, and commit.

    With `where`, a condition in Spark SQL, only fragments with a row that matches it. Options that
    are not set are taken from the table's config.
    """
    base = table.open()
    others = None
    if where is not None:
        matching = fragments_where(table.spark, base.snapshot, where)
        others = frozenset(f.id for f in base.snapshot.manifest.fragments if f.id not in matching)
    settings = base.maintenance.compaction_settings(
        target_rows_per_fragment=target_rows,
        sort_by=parse_orderings(sort_by) if isinstance(sort_by, str) else tuple(sort_by or ()),
        z_order_by=split_list(z_order_by)
        if isinstance(z_order_by, str)
        else tuple(z_order_by or ()),
        excluded_fragment_ids=others,
    )
    after = base.maintenance.compact(settings, CompactionRun(engine=table.engine))
    counts = {name: getattr(after.metrics, name) for name in _COUNTS}
    return {"version": after.snapshot.version, **counts}


def parse_orderings(text: str) -> tuple[Ordering, ...]:
    """Parse columns to sort by: `day, amount DESC`."""
    orderings: list[Ordering] = []
    for part in split_list(text):
        column, _, direction = part.rpartition(" ")
        if direction.upper() not in ("ASC", "DESC") or not column:
            column, direction = part, "ASC"
        if any(" " in bare for bare in column.strip().split("`")[::2]):
            raise InvalidRequestError(f"{part!r} is not a sort column such as day DESC")
        orderings.append(Ordering(column=column.strip(), ascending=direction.upper() == "ASC"))
    return tuple(orderings)


_CLEANED = row_schema(
    versions_removed=WHOLE,
    files_removed=WHOLE,
    bytes_removed=WHOLE,
    files_kept=WHOLE,
    bytes_kept=WHOLE,
    kept_until=TEXT,
    is_dry_run=FLAG,
)


@procedure("removes old versions and files that are no longer referenced", _CLEANED)
def cleanup(
    table: SparkTable,
    older_than: str | timedelta | None = None,
    retain_versions: int | None = None,
    *,
    dry_run: bool = False,
) -> ResultRow:
    """Remove versions according to a policy, and files that are no longer referenced.

    Unreferenced files that may belong to a write in progress are kept until the given time.
    """
    policy = CleanupPolicy(older_than=parse_age(older_than), retain_versions=retain_versions)
    base = table.open()
    with describe_jobs(table.spark, f"clean up {base.location.uri}"):
        report = base.maintenance.clean_up(policy, dry_run=dry_run, engine=table.engine)
    return {
        "versions_removed": len(report.versions),
        "files_removed": report.files_removed,
        "bytes_removed": report.bytes_removed,
        "files_kept": len(report.waiting),
        "bytes_kept": sum(file.size_bytes for file in report.waiting),
        "kept_until": _time_text(report.waiting_until_ns),
        "is_dry_run": dry_run,
    }


def parse_age(age: str | timedelta | None) -> timedelta | None:
    """Parse an age such as `7days`, unless it is one already."""
    if not isinstance(age, str):
        return age
    try:
        return parse_duration(age)
    except ValueError as error:
        raise InvalidRequestError(str(error), found=age) from error


def _time_text(time_ns: int | None) -> str | None:
    """Return a time in ISO 8601, in UTC and whole seconds."""
    if time_ns is None:
        return None
    return datetime.fromtimestamp(time_ns // 10**9, UTC).isoformat()


_OPTIMIZED = row_schema(
    version=WHOLE,
    fragments_removed=WHOLE,
    fragments_added=WHOLE,
    versions_removed=WHOLE,
    files_removed=WHOLE,
    not_done=TEXT,
    is_dry_run=FLAG,
)


@procedure("compacts, refreshes indices and cleans up if worthwhile", _OPTIMIZED)
def optimize(table: SparkTable, *, dry_run: bool = False) -> ResultRow:
    """Compact and clean up if worthwhile, according to the table's config."""
    base = table.open()
    with describe_jobs(table.spark, f"optimize {base.location.uri}"):
        merging, refreshing = index_maintenance(table.spark)
        run = OptimizeRun(
            engine=table.engine,
            before_compaction=(merging,),
            index_maintenance=(refreshing,),
        )
        outcome = base.maintenance.optimize(dry_run=dry_run, run=run)
    compaction, removal = outcome.compaction, outcome.cleanup
    reasons = [*outcome.skipped, *([] if outcome.conflict is None else [outcome.conflict])]
    return {
        "version": outcome.snapshot.version,
        "fragments_removed": 0 if compaction is None else compaction.fragments_removed,
        "fragments_added": 0 if compaction is None else compaction.fragments_added,
        "versions_removed": 0 if removal is None else len(removal.versions),
        "files_removed": 0 if removal is None else removal.files_removed,
        "not_done": "; ".join(reasons) or None,
        "is_dry_run": dry_run,
    }


_FACTS_OF_FINDINGS = {
    "code": TEXT,
    "message": TEXT,
    "version": WHOLE,
    "branch": TEXT,
    "path": TEXT,
    "hint": TEXT,
}


@procedure("lists inconsistencies", row_schema(severity=TEXT, **_FACTS_OF_FINDINGS))
def check(table: SparkTable, *, data: bool = False, versions: str = "latest") -> list[ResultRow]:
    """Return the findings about a table; with `data`, executors read every value."""
    if versions not in ("all", "latest"):
        raise InvalidRequestError(f"versions must be all or latest, not {versions!r}")
    reach: Literal["all", "latest"] = "all" if versions == "all" else "latest"
    base = table.open()
    place = TablePlace(base.snapshot.main_location)
    with describe_jobs(table.spark, f"check {base.location.uri}"):
        findings = list(place.check(data=data, versions=reach, engine=table.engine))
    return [
        {"severity": f.severity.value, **{name: getattr(f, name) for name in _FACTS_OF_FINDINGS}}
        for f in findings
    ]


@procedure(
    "repairs inconsistencies where possible",
    row_schema(action=TEXT, what=TEXT, branch=TEXT, advice=TEXT),
)
def repair(
    table: SparkTable,
    *,
    dry_run: bool = False,
    drop_lost: bool = False,
    data: bool = False,
    replace_invalid_utf8: bool = False,
) -> list[ResultRow]:
    """Repair a table; the rows list what was done, or would be, and what remains."""
    options = RepairOptions(
        data=data, drop_lost=drop_lost, replace_invalid_utf8=replace_invalid_utf8
    )
    place = TablePlace(table.open().snapshot.main_location)
    work = place.plan_repair(options) if dry_run else place.repair(options).done
    action = "would repair" if dry_run else "repaired"
    rows: list[ResultRow] = [
        {"action": action, "what": step, "branch": branch, "advice": None}
        for branch, step in work.steps()
    ]
    rows += [
        {
            "action": "left",
            "what": left.finding.message,
            "branch": left.finding.branch,
            "advice": left.advice,
        }
        for left in work.left
    ]
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest:
    """Options of a compaction; unset options are taken from the table's config."""

    where: str | None = None
    """Rewrite only fragments with a row that matches this condition, in Spark SQL."""

    target_rows: int | None = None
    sort_by: tuple[Ordering, ...] = ()
    z_order_by: tuple[str, ...] = ()


_DETAIL = (
    "format string, location string, version long, branch string, lastModified timestamp, "
    "numRows long, numFragments long, numFiles long, sizeInBytes long, numDeletionFiles long, "
    "stableRowIds boolean, dataStorageVersion string, indices array<string>, "
    "properties map<string, string>"
)


class TableMaintenance(TableAccess):
    """Methods that describe, compact, clean up, check and repair a table."""

    def history(self, limit: int | None = None) -> DataFrame:
        """Return the versions and the operations that created them, the newest first.

        Args:
            limit: Versions to return, at most.

        Returns:
            One row per version.

        Examples:
            >>> deleted = table.delete("id = 1")
            >>> [row.version for row in table.history().collect()]
            [2, 1]
        """
        return self._facts("history", limit)

    def detail(self) -> DataFrame:
        """Return one row about the newest version.

        Returns:
            The location, version, counts, sizes, indices and properties.

        Examples:
            >>> detail = table.detail().first()
            >>> detail.numRows, detail.numFragments, detail.stableRowIds
            (3, 1, True)
        """
        table = self._table.open()
        at, counts = table.snapshot, table.history.summarize()
        manifest = at.manifest
        version = manifest.data_version
        row = (
            "lance",
            at.location.uri,
            at.version,
            at.branch,
            manifest.timestamp,
            table.history.recorded_rows(),
            counts.total_fragments,
            counts.total_data_files,
            counts.total_files_size,
            counts.total_deletion_files,
            manifest.has_stable_row_ids,
            version.value,
            sorted({index.name for index in at.indices}),
            dict(manifest.config),
        )
        return self._table.spark.createDataFrame([row], _DETAIL)

    def optimize(self) -> LanceOptimizeBuilder:
        """Start a compaction.

        Returns:
            A builder: select rows, then call one of its `execute` methods.

        Examples:
            >>> deleted = table.delete("id = 1")
            >>> table.optimize().executeCompaction().count()
            1
        """
        return LanceOptimizeBuilder(self)

    def optimizeAll(self, dryRun: bool = False) -> DataFrame:
        """Compact and clean up if worthwhile, according to the table's properties.

        Args:
            dryRun: Change nothing.

        Returns:
            One row: what was done, or would be.

        Examples:
            >>> table.optimizeAll(dryRun=True).count()
            1
        """
        return self._show(optimize, dry_run=dryRun)

    def vacuum(self, retentionHours: float | None = None, dryRun: bool = False) -> DataFrame:
        """Remove old versions and their files.

        Versions with a tag or a branch are retained.

        Args:
            retentionHours: Age of the versions to remove; two weeks by default.
            dryRun: Remove nothing.

        Returns:
            One row with the counts.

        Examples:
            >>> table.vacuum(dryRun=True).count()
            1
        """
        age = None if retentionHours is None else timedelta(hours=retentionHours)
        return self._show(cleanup, older_than=age, dry_run=dryRun)

    def check(self, data: bool = False, versions: str = "latest") -> DataFrame:
        """Check the table.

        Args:
            data: Read every value.
            versions: `latest` or `all`.

        Returns:
            One row for each finding.

        Examples:
            >>> table.check().count()
            0
        """
        return self._show(check, data=data, versions=versions)

    def repair(
        self, dryRun: bool = False, *, dropLost: bool = False, replaceInvalidUtf8: bool = False
    ) -> DataFrame:
        """Repair the table.

        Args:
            dryRun: Change nothing.
            dropLost: Drop fragments with missing files, with all their rows.
            replaceInvalidUtf8: Read every value, and replace invalid UTF-8 bytes of strings with
                U+FFFD.

        Returns:
            What was done, and what remains.

        Examples:
            >>> table.repair(dryRun=True).count()
            0
        """
        return self._show(
            repair, dry_run=dryRun, drop_lost=dropLost, replace_invalid_utf8=replaceInvalidUtf8
        )

    def compacted(self, request: CompactionRequest) -> DataFrame:
        """Compact, and return the counts.

        Args:
            request: What to compact; `optimize` builds it.

        Returns:
            One row with the counts.
        """
        return self._show(
            compact,
            target_rows=request.target_rows,
            where=request.where,
            sort_by=request.sort_by,
            z_order_by=request.z_order_by,
        )


class LanceOptimizeBuilder:
    """Builder of a compaction: the rows to select, then the method."""

    def __init__(self, table: TableMaintenance) -> None:
        self._table = table
        self._request = CompactionRequest()

    def __repr__(self) -> str:
        return f"LanceOptimizeBuilder({self._table!r}, {self._request!r})"

    def where(self, condition: str) -> LanceOptimizeBuilder:
        """Rewrite only fragments with a matching row.

        Args:
            condition: A condition in Spark SQL.

        Returns:
            The builder.

        Examples:
            >>> table.optimize().where("id > 100").executeCompaction().count()
            1
        """
        self._request = replace(self._request, where=condition)
        return self

    def targetRows(self, rows: int) -> LanceOptimizeBuilder:
        """Set the number of rows per fragment.

        Args:
            rows: Rows to aim at.

        Returns:
            The builder.

        Examples:
            >>> table.optimize().targetRows(1000).executeCompaction().count()
            1
        """
        self._request = replace(self._request, target_rows=rows)
        return self

    def executeCompaction(self) -> DataFrame:
        """Merge small fragments and remove deleted rows.

        Returns:
            One row with the counts.

        Examples:
            >>> table.optimize().executeCompaction().count()
            1
        """
        return self._table.compacted(self._request)

    def executeZOrderBy(self, *columns: str) -> DataFrame:
        """Cluster rows along a Z-order curve.

        Args:
            *columns: The columns.

        Returns:
            One row with the counts.

        Examples:
            >>> table.optimize().executeZOrderBy("id", "score").count()
            1
        """
        return self._table.compacted(replace(self._request, z_order_by=columns))

    def executeSortBy(self, *columns: str) -> DataFrame:
        """Sort rows.

        Args:
            *columns: The columns; `day DESC` sorts in descending order.

        Returns:
            One row with the counts.

        Examples:
            >>> sorted_rows = table.optimize().executeSortBy("id DESC")
            >>> table.toDF().first().id
            3
        """
        keys = parse_orderings(", ".join(columns))
        return self._table.compacted(replace(self._request, sort_by=keys))
