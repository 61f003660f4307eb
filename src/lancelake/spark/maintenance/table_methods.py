"""Metadata and maintenance methods of `LanceTable`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from pyspark.sql import DataFrame

from lancelake.scan.request import Ordering
from lancelake.spark.maintenance import jobs
from lancelake.spark.maintenance.jobs import CompactionRequest
from lancelake.spark.maintenance.table_access import TableAccess
from lancelake.table.cleanup.policy import CleanupPolicy
from lancelake.table.history import summarize
from lancelake.table.repair.options import RepairOptions
from lancelake.table.version_delta import live_rows

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
        at = self.snapshot()
        counts, manifest = summarize(at), at.manifest
        version = manifest.data_version
        row = (
            "lance",
            at.location.uri,
            at.version,
            at.branch,
            manifest.timestamp,
            live_rows(at),
            counts.total_fragments,
            counts.total_data_files,
            counts.total_files_size,
            counts.total_deletion_files,
            manifest.has_stable_row_ids,
            version.value,
            sorted({index.name for index in at.indices}),
            dict(manifest.config),
        )
        return self._spark.createDataFrame([row], _DETAIL)

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
        done = jobs.optimize_table(self._spark, self.snapshot(), dry_run=dryRun)
        return self._answered([done], jobs.OPTIMIZED)

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
        policy = CleanupPolicy(older_than=age)
        done = jobs.clean_table(self._spark, self.snapshot(), policy, dry_run=dryRun)
        return self._answered([done], jobs.CLEANED)

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
        found = jobs.check_table(self._spark, self.snapshot(), data=data, versions=versions)
        return self._answered(found, jobs.CHECKED)

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
        options = RepairOptions(drop_lost=dropLost, replace_invalid_utf8=replaceInvalidUtf8)
        done = jobs.repair_table(self.snapshot(), options, dry_run=dryRun)
        return self._answered(done, jobs.REPAIRED)

    def compacted(self, request: CompactionRequest) -> DataFrame:
        """Compact, and return the counts.

        Args:
            request: What to compact; `optimize` builds it.

        Returns:
            One row with the counts.
        """
        done = jobs.compact_table(self._spark, self.snapshot(), request)
        return self._answered([done], jobs.COMPACTED)


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
        keys: tuple[Ordering, ...] = jobs.orderings(", ".join(columns))
        return self._table.compacted(replace(self._request, sort_by=keys))
