"""MemWAL of a table on Spark: initialization, merges as jobs, status and garbage collection."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import SparkSession

from lancelake.commit.snapshot import Snapshot
from lancelake.engine import wire
from lancelake.engine.port import Job
from lancelake.memwal.collect import collect_garbage
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.setup import set_up
from lancelake.memwal.status import wal_status
from lancelake.memwal.take_over import flush_tails
from lancelake.spark.catalog.result_rows import FLAG, TEXT, WHOLE, ResultRow, row_schema
from lancelake.spark.jobs.engine import SparkEngine, described
from lancelake.storage.location import Location
from lancelake.table.open import Latest, open_snapshot

_TASK_BYTES = 256 << 20


MERGED = row_schema(
    version=WHOLE,
    regions=WHOLE,
    rows_inserted=WHOLE,
    rows_updated=WHOLE,
    rows_deleted=WHOLE,
)
STATUS = row_schema(
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
COLLECTED = row_schema(
    region=TEXT,
    generations_removed=WHOLE,
    files_removed=WHOLE,
    bytes_removed=WHOLE,
    is_dry_run=FLAG,
)
INITIALIZED = row_schema(version=WHOLE)


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
        base = open_snapshot(self.location, Latest(), main=self.main)
        return wire.dumps(flush_tails(base, (self.region,)))


def initialize_table_wal(base: Snapshot, buckets: int, key: Sequence[str] | None) -> ResultRow:
    """Add a MemWAL to a table, whose rows are divided by the hash of the first key column."""
    return {"version": set_up(base, buckets=buckets, key=key).version}


def merge_table_wal(spark: SparkSession, base: Snapshot, *, flush: bool = False) -> ResultRow:
    """Merge the flushed rows of all regions on executors, and commit once.

    With `flush`, WAL tails are flushed first, which stops the writers of these regions.
    """
    engine = SparkEngine(spark)
    with described(spark, f"merge the MemWAL of {base.location.uri}"):
        if flush:
            _flush(engine, base)
        done = merge_generations(base, engine=engine)
    return {
        "version": done.snapshot.version,
        "regions": len(done.marks),
        "rows_inserted": done.counts.inserted,
        "rows_updated": done.counts.updated,
        "rows_deleted": done.counts.deleted,
    }


def wal_status_rows(base: Snapshot) -> list[ResultRow]:
    """Return a row for each region."""
    return [dict(region.facts()) for region in wal_status(base).regions]


def collect_table_wal(base: Snapshot, age: timedelta | None, *, dry_run: bool) -> list[ResultRow]:
    """Remove merged generations and flushed WAL entries; a row for each region."""
    done = collect_garbage(base, older_than=age, dry_run=dry_run)
    return [
        {
            "region": str(region.region),
            "generations_removed": len(region.trimmed),
            "files_removed": len(region.files),
            "bytes_removed": sum(file.size_bytes for file in region.files),
            "is_dry_run": dry_run,
        }
        for region in done.regions
    ]


def _flush(engine: SparkEngine, base: Snapshot) -> None:
    tasks = [
        FlushTail(location=base.location, main=base.main_location, region=region.region)
        for region in wal_status(base).regions
        if region.tail_entries
    ]
    for _ in engine.run(Job(description=f"flush WAL tails of {base.location.uri}", tasks=tasks)):
        pass
