"""Dataset methods of the MemWAL: `wal`, and those of pylance."""

from __future__ import annotations

from typing import Any

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.memwal.region_spec import RegionSpec, Unsharded
from lancelake.memwal.initialize import bucketed, by_value, details_of, initialize
from lancelake.memwal.settings import recorded
from lancelake.pylance._dataset.arguments.os_errors import names_dataset, os_errors
from lancelake.pylance._dataset.mem_wal.lsm import ShardWriter, open_shard_writer
from lancelake.pylance._dataset.mem_wal.wal import TableWal
from lancelake.pylance._dataset.mem_wal.wal_rows import newest
from lancelake.pylance._dataset.state.guarded import GuardedDataset
from lancelake.pylance._values.arguments import given
from lancelake.pylance._values.shards import shown_spec

_SHARDING = (
    "maintained_indexes",
    "bucket_column",
    "num_buckets",
    "identity_column",
    "unsharded",
    "hnsw_params",
)


class DatasetMemWal(GuardedDataset):
    """Methods for the MemWAL of a table."""

    _snapshot: Snapshot

    @property
    def wal(self) -> TableWal:
        """Durable upserts and deletes in milliseconds, and reads that include them.

        Examples:
            >>> ds.wal
            TableWal('people.lance')
        """
        return TableWal(self)

    @os_errors()
    @names_dataset
    def initialize_mem_wal(
        self,
        *,
        maintained_indexes: list[str] | None = None,
        bucket_column: str | None = None,
        num_buckets: int | None = None,
        identity_column: str | None = None,
        unsharded: bool = False,
        durable_write: bool | None = None,
        max_wal_buffer_size: int | None = None,
        max_wal_flush_interval_ms: int | None = None,
        max_memtable_size: int | None = None,
        max_memtable_rows: int | None = None,
        max_memtable_batches: int | None = None,
        max_unflushed_memtable_bytes: int | None = None,
        manifest_scan_batch_size: int | None = None,
        backpressure_log_interval_ms: int | None = None,
        stats_log_interval_ms: int | None = None,
        hnsw_params: dict[str, dict[str, int]] | None = None,
    ) -> None:
        """Add a MemWAL to the table, as pylance does; `wal.initialize` has fewer arguments.

        At most one way to choose the shard of a row may be given; without any, writers name shards
        themselves. Settings that are not listed tune official Lance.

        Args:
            maintained_indexes: Must not name any: generations have no index but that of the key.
            bucket_column: Key column whose hash chooses the shard, together with `num_buckets`.
            num_buckets: Number of shards.
            identity_column: Key column whose value chooses the shard.
            unsharded: All rows are in one shard.
            max_memtable_size: Bytes in memory at which a writer flushes, recorded for all writers.
            max_memtable_rows: Rows in memory at which a writer flushes.
            max_memtable_batches: Batches in memory at which a writer flushes.
            max_unflushed_memtable_bytes: Bytes in memory at which writes wait.

        Raises:
            InvalidRequestError: More than one way to choose shards is given, or the table has no
                primary key.

        Examples:
            >>> key = {"lance-schema:unenforced-primary-key": "true"}
            >>> schema = pa.schema([pa.field("id", pa.int64(), nullable=False, metadata=key)])
            >>> keyed = lance.write_dataset({"id": [1]}, "keyed.lance", schema=schema)
            >>> keyed.initialize_mem_wal(bucket_column="id", num_buckets=4)
            >>> keyed.mem_wal_index_details()["num_shards"]
            4
        """
        settings = given(locals(), without=_SHARDING)
        if maintained_indexes:
            raise UnsupportedError(
                "indices of unmerged rows are not maintained",
                action="Pass an empty list for maintained_indexes, or omit it.",
            )
        base = newest(self._snapshot)
        spec = _spec(base, bucket_column, num_buckets, identity_column, unsharded=unsharded)
        self._snapshot = initialize(
            base,
            spec,
            self._choices,
            writer_defaults=recorded(settings),
            maintain_all_indexes=maintained_indexes is None,
        )

    @names_dataset
    def mem_wal_index_details(self) -> dict[str, Any] | None:
        """Return the configuration of the MemWAL.

        Returns:
            The configuration; None for a table without one.

        Examples:
            >>> ds.mem_wal_index_details() is None
            True
        """
        if all(index.name != MEM_WAL for index in self._snapshot.indices):
            return None
        found = details_of(self._snapshot)
        return {
            "num_shards": found.num_regions,
            "maintained_indexes": list(found.maintained_indexes),
            "maintain_all_indexes": found.maintain_all_indexes,
            "writer_config_defaults": dict(found.writer_defaults),
            "sharding_specs": [shown_spec(spec) for spec in found.specs],
        }

    @os_errors()
    def mem_wal_writer(
        self,
        shard_id: str,
        *,
        durable_write: bool | None = None,
        max_wal_buffer_size: int | None = None,
        max_wal_flush_interval_ms: int | None = None,
        max_memtable_size: int | None = None,
        max_memtable_rows: int | None = None,
        max_memtable_batches: int | None = None,
        max_unflushed_memtable_bytes: int | None = None,
        manifest_scan_batch_size: int | None = None,
        backpressure_log_interval_ms: int | None = None,
        stats_log_interval_ms: int | None = None,
        hnsw_params: dict[str, dict[str, int]] | None = None,
    ) -> ShardWriter:
        """Claim a shard, and return its writer; the writer before it is stopped.

        Rows must belong to the shard by the table's sharding spec, which is not checked: `wal`
        chooses the shards of rows itself. Writes are always durable. Settings that are not listed
        tune official Lance.

        Args:
            shard_id: The uuid of the shard.
            max_memtable_size: Bytes in memory at which the writer flushes.
            max_memtable_rows: Rows in memory at which the writer flushes.
            max_memtable_batches: Batches in memory at which the writer flushes.
            max_unflushed_memtable_bytes: Bytes in memory at which writes wait.

        Returns:
            The writer.

        Raises:
            InvalidRequestError: The table has no MemWAL.

        Examples:
            >>> ds.wal.initialize(key="id", unsharded=True)
            >>> shard = "7f3c1a52-9d1e-4f7b-8a66-0c5d2b9e1f34"
            >>> writer = ds.mem_wal_writer(shard)
            >>> writer.put(pa.table({"id": [4], "name": ["di"], "score": [4.5]}))
            >>> writer.close()
            >>> ds.wal.count_rows()
            4
        """
        settings = given(locals(), without=("shard_id", "hnsw_params"))
        return open_shard_writer(newest(self._snapshot), shard_id, settings)


def _spec(
    base: Snapshot,
    bucket_column: str | None,
    num_buckets: int | None,
    identity_column: str | None,
    *,
    unsharded: bool,
) -> RegionSpec | None:
    by_bucket = bucket_column is not None or num_buckets is not None
    if by_bucket + (identity_column is not None) + unsharded > 1:
        raise InvalidRequestError("at most one sharding mode may be selected")
    if unsharded:
        return Unsharded()
    if identity_column is not None:
        return by_value(base, identity_column)
    if not by_bucket:
        return None
    if bucket_column is None or num_buckets is None:
        raise ValueError("bucket sharding requires both `bucket_column` and `num_buckets`")
    return bucketed(base, bucket_column, num_buckets)
