"""MemWAL methods of `LanceTable`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import DataFrame

from lancelake.spark.maintenance import wal_jobs
from lancelake.spark.maintenance.table_access import TableAccess
from lancelake.spark.writing.wal_rows import Upsert, UpsertCounts, once_unit, upsert_frame


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
        wal_jobs.initialize_table_wal(self.snapshot(), buckets, names)

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
        done = wal_jobs.merge_table_wal(self._spark, self.snapshot(), flush=flush)
        return self._answered([done], wal_jobs.MERGED)

    def walStatus(self) -> DataFrame:
        """Return the regions of the MemWAL, and how many of their rows are not merged.

        Returns:
            One row per region that has been written to.

        Examples:
            >>> table.initializeWal(buckets=1, key="id")
            >>> table.walStatus().count()
            0
        """
        return self._answered(wal_jobs.wal_status_rows(self.snapshot()), wal_jobs.STATUS)

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
        done = wal_jobs.collect_table_wal(self.snapshot(), age, dry_run=dryRun)
        return self._answered(done, wal_jobs.COLLECTED)
