"""The MemWAL of tables: methods of `LanceTable`, and their procedures."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession

from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values.metadata import Location, split_list
from lancelake.core.values.tasks import Job, port
from lancelake.spark.jobs.engine import SparkEngine, describe_jobs
from lancelake.spark.jobs.wal_rows import Upsert, UpsertCounts, once_unit, upsert_frame
from lancelake.spark.sql.maintenance_methods import parse_age
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
from lancelake.spark.values.options import TableOptions

_TASK_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushTail:
    """Flushes the WAL tail of a region, which stops its writer."""

    location: Location
    main: Location
    region: uuid.UUID

    @property
    def memory_bytes(self) -> int:
        """Estimate of the memory that a run takes."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Flush the tail, and return the regions that had one."""
        base = TablePlace(self.location).open(main=self.main)
        return port.dumps(base.wal.flush_tails((self.region,)))


@procedure(
    "adds a MemWAL to a table, for durable upserts in milliseconds", row_schema(version=WHOLE)
)
def init_wal(table: SparkTable, buckets: int = 8, key: str | None = None) -> ResultRow:
    """Add a MemWAL to a table, whose rows are divided by the hash of the first key column."""
    names = None if key is None else split_list(key)
    return {"version": table.open().wal.set_up(buckets=buckets, key=names).version}


_MERGED = row_schema(
    version=WHOLE,
    regions=WHOLE,
    rows_inserted=WHOLE,
    rows_updated=WHOLE,
    rows_deleted=WHOLE,
)


@procedure("merges flushed rows of the MemWAL into the table; with flush, all rows", _MERGED)
def merge_wal(table: SparkTable, *, flush: bool = False) -> ResultRow:
    """Merge the flushed rows of all regions on executors, and commit once.

    With `flush`, WAL tails are flushed first, which stops the writers of these regions.
    """
    base = table.open()
    with describe_jobs(table.spark, f"merge the MemWAL of {base.location.uri}"):
        if flush:
            _flush(table.engine, base)
        merged = base.wal.merge(engine=table.engine)
    return {
        "version": merged.snapshot.version,
        "regions": len(merged.marks),
        "rows_inserted": merged.counts.inserted,
        "rows_updated": merged.counts.updated,
        "rows_deleted": merged.counts.deleted,
    }


def merge_if_due(spark: SparkSession, table: TableOptions, batch: int) -> None:
    """Merge the MemWAL into the table after every so many batches, as options say."""
    every = table.positive("mergeEvery")
    if every is not None and (batch + 1) % every == 0:
        merge_wal.run(SparkTable(spark, table), flush=True)


def _flush(engine: SparkEngine, base: Table) -> None:
    at = base.snapshot
    tasks = [
        FlushTail(location=at.location, main=at.main_location, region=region.region)
        for region in base.wal.status().regions
        if region.tail_entries
    ]
    for _ in engine.run(Job(description=f"flush WAL tails of {at.location.uri}", tasks=tasks)):
        pass


_STATUS = row_schema(
    region=TEXT,
    is_sealed=FLAG,
    writer_epoch=WHOLE,
    current_generation=WHOLE,
    merged_generation=WHOLE,
    unmerged_generations=WHOLE,
    flushed_rows=WHOLE,
    tail_entries=WHOLE,
    tail_rows=WHOLE,
)


@procedure("lists the regions of the MemWAL", _STATUS)
def wal_status(table: SparkTable) -> list[ResultRow]:
    """Return a row for each region."""
    return [dict(region.facts()) for region in table.open().wal.status().regions]


_COLLECTED = row_schema(
    region=TEXT,
    generations_removed=WHOLE,
    files_removed=WHOLE,
    bytes_removed=WHOLE,
    is_dry_run=FLAG,
)


@procedure("removes merged generations and flushed entries of the MemWAL", _COLLECTED)
def collect_wal(
    table: SparkTable, older_than: str | timedelta | None = None, *, dry_run: bool = False
) -> list[ResultRow]:
    """Remove merged generations and flushed WAL entries; a row for each region."""
    age = parse_age(older_than)
    collected = table.open().wal.collect_garbage(older_than=age, dry_run=dry_run)
    return [
        {
            "region": str(region.region),
            "generations_removed": len(region.trimmed),
            "files_removed": len(region.files),
            "bytes_removed": sum(file.size_bytes for file in region.files),
            "is_dry_run": dry_run,
        }
        for region in collected.regions
    ]


class TableWalMethods(TableAccess):
    """Durable upserts through the MemWAL of a table, reads that include them, and merges."""

    @abstractmethod
    def toDF(self, **options: object) -> DataFrame:
        """Return the rows."""

    def initializeWal(self, buckets: int = 8, key: str | Sequence[str] | None = None) -> None:
        """Add a MemWAL.

        Args:
            buckets: Regions, by the hash of the first key column.
            key: The primary key, which is declared if the table has none.

        Examples:
            >>> table.initializeWal(buckets=1, key="id")
            >>> table.latest().count()
            3
        """
        names = [key] if isinstance(key, str) else key
        self._table.open().wal.set_up(buckets=buckets, key=names)

    def upsert(
        self,
        source: DataFrame,
        *,
        deleteWhen: str | None = None,
        sequenceBy: str | None = None,
        txnAppId: str | None = None,
        txnVersion: int | None = None,
    ) -> UpsertCounts:
        """Insert rows, or replace those of the same key; durable when this returns.

        Args:
            source: The rows.
            deleteWhen: Rows that match this condition delete their key.
            sequenceBy: Of several rows of a key, the one with the greatest value of this column
                wins.
            txnAppId: Name of the writer; together with `txnVersion` the rows are written once.
            txnVersion: Number of the write.

        Returns:
            The counts.

        Raises:
            InvalidRequestError: The table has no MemWAL.

        Examples:
            >>> table.initializeWal(buckets=1, key="id")
            >>> source = spark.createDataFrame([(4, "di", 4.5)], table.toDF().schema)
            >>> counts = table.upsert(source)
            >>> table.latest().count()
            4
        """
        unit = once_unit(txnAppId, txnVersion)
        upsert = Upsert(delete_when=deleteWhen, sequence_by=sequenceBy)
        return upsert_frame(source, self.snapshot(), unit, upsert)

    def latest(self, freshness: str = "durable") -> DataFrame:
        """Return the newest row of each key, those of the MemWAL included.

        Args:
            freshness: `durable` for every write that has returned, `flushed` for those of
                generations.

        Returns:
            The rows.

        Examples:
            >>> table.initializeWal(buckets=1, key="id")
            >>> table.latest().where("id = 2").count()
            1
        """
        return self.toDF(freshness=freshness)

    def mergeWal(self, flush: bool = False) -> DataFrame:
        """Merge flushed rows into the table on executors.

        Args:
            flush: Flush WAL tails first, which stops the writers of their regions.

        Returns:
            One row with the counts.

        Examples:
            >>> table.initializeWal(buckets=1, key="id")
            >>> table.mergeWal().count()
            1
        """
        return self._show(merge_wal, flush=flush)

    def walStatus(self) -> DataFrame:
        """Return the regions of the MemWAL, and how many of their rows are not merged.

        Returns:
            One row per region that has been written to.

        Examples:
            >>> table.initializeWal(buckets=1, key="id")
            >>> table.walStatus().count()
            0
        """
        return self._show(wal_status)

    def collectWal(self, olderThanHours: float | None = None, dryRun: bool = False) -> DataFrame:
        """Remove merged generations and flushed WAL entries.

        Args:
            olderThanHours: Age of what is removed; a day by default.
            dryRun: Remove nothing.

        Returns:
            What was removed.

        Examples:
            >>> table.initializeWal(buckets=1, key="id")
            >>> table.collectWal(dryRun=True).count()
            0
        """
        age = None if olderThanHours is None else timedelta(hours=olderThanHours)
        return self._show(collect_wal, older_than=age, dry_run=dryRun)
