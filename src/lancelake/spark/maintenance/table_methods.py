"""Metadata and maintenance methods of `LanceTable`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.scan.request import Ordering
from lancelake.spark.maintenance import index_jobs, jobs
from lancelake.spark.maintenance.jobs import CompactionRequest, Row
from lancelake.spark.types import spark_field
from lancelake.table.branches import remove_branch
from lancelake.table.clone import create_branch
from lancelake.table.describe.metadata_tables import facts
from lancelake.table.history import summarize
from lancelake.table.index.parameters import ScalarKind, TableIndexParameters, VectorKind
from lancelake.table.index.request import IndexRequest
from lancelake.table.open import AtVersion, open_snapshot
from lancelake.table.repair.options import RepairOptions
from lancelake.table.tags import create_tag, remove_tag
from lancelake.table.version_delta import live_rows

_DETAIL = (
    "format string, location string, version long, branch string, lastModified timestamp, "
    "numRows long, numFragments long, numFiles long, sizeInBytes long, numDeletionFiles long, "
    "stableRowIds boolean, dataStorageVersion string, indices array<string>, "
    "properties map<string, string>"
)


class TableMaintenance(ABC):
    """Metadata and maintenance methods of a table."""

    _spark: SparkSession

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Open the newest version."""

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

    def tags(self) -> DataFrame:
        """Return the tags with their versions and branches.

        Returns:
            One row per tag.

        Examples:
            >>> table.createTag("stable")
            >>> [(row.name, row.version) for row in table.tags().collect()]
            [('stable', 1)]
        """
        return self._refs("tag")

    def branches(self) -> DataFrame:
        """Return the branches with the version and branch each was forked from.

        Returns:
            One row per branch.

        Examples:
            >>> table.createBranch("trial")
            >>> [row.name for row in table.branches().collect()]
            ['trial']
        """
        return self._refs("branch")

    def createTag(self, name: str, version: int | None = None) -> None:
        """Create a tag.

        Args:
            name: The name of the tag.
            version: The version, by default the newest.

        Raises:
            AlreadyExistsError: The tag exists.
            VersionNotFoundError: The table does not have the version.

        Examples:
            >>> table.createTag("stable", 1)
            >>> table.toDF(tag="stable").count()
            3
        """
        at = self._at(version)
        create_tag(at, name, AtVersion(at.version))

    def deleteTag(self, name: str) -> None:
        """Delete a tag; its version is kept.

        Args:
            name: The name of the tag.

        Raises:
            RefNotFoundError: The table has no such tag.

        Examples:
            >>> table.createTag("stable")
            >>> table.deleteTag("stable")
            >>> table.tags().count()
            0
        """
        remove_tag(self.snapshot(), name)

    def createBranch(self, name: str, version: int | None = None) -> None:
        """Create a branch.

        Args:
            name: The name of the branch.
            version: The version to start from, by default the newest.

        Raises:
            AlreadyExistsError: The branch exists.

        Examples:
            >>> table.createBranch("trial")
            >>> LanceTable.forPath(spark, path, branch="trial").toDF().count()
            3
        """
        create_branch(self._at(version), name)

    def deleteBranch(self, name: str) -> None:
        """Delete a branch with its versions.

        Args:
            name: The name of the branch.

        Raises:
            RefNotFoundError: The table has no such branch.

        Examples:
            >>> table.createBranch("trial")
            >>> table.deleteBranch("trial")
            >>> table.branches().count()
            0
        """
        remove_branch(self.snapshot().main_location, name)

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
        request = IndexRequest(
            column=column, kind=kind, name=name, replace=replace, parameters=parameters
        )
        done = index_jobs.index_table(self._spark, self.snapshot(), request)
        return self._answered([done], index_jobs.INDEXED)

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
        names = None if name is None else [name]
        done = index_jobs.refresh_table(self._spark, self.snapshot(), names, rebuild=rebuild)
        return self._answered(done, index_jobs.INDEXED)

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
        index_jobs.drop_table_index(self.snapshot(), name)

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
        policy = jobs.cleanup_policy(age)
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

    def _at(self, version: int | None) -> Snapshot:
        head = self.snapshot()
        if version is None:
            return head
        return open_snapshot(head.location, AtVersion(version), main=head.main_location)

    def _refs(self, kind: str) -> DataFrame:
        return self._facts("refs").where(f"type = '{kind}'").drop("type")

    def _facts(self, name: str, limit: int | None = None) -> DataFrame:
        found = facts(name, self.snapshot(), limit)
        schema = t.StructType([spark_field(field) for field in found.schema])
        rows = [tuple(_plain(row, schema).values()) for row in found.to_pylist()]
        return self._spark.createDataFrame(rows, schema)

    def _answered(self, rows: Iterable[Row], schema: t.StructType) -> DataFrame:
        names = schema.fieldNames()
        return self._spark.createDataFrame([tuple(row[n] for n in names) for row in rows], schema)


class LanceOptimizeBuilder:
    """Builder of a compaction: the rows to select, then the method."""

    def __init__(self, table: TableMaintenance) -> None:
        self._table = table
        self._request = CompactionRequest()

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


def _plain(row: Row, schema: t.StructType) -> dict[str, object]:
    """Return a row with maps in a form that Spark accepts."""
    maps = {f.name for f in schema.fields if isinstance(f.dataType, t.MapType)}
    return {name: dict(value) if name in maps else value for name, value in row.items()}
