"""Dataset methods of the MemWAL: `wal`, and those of pylance."""

from __future__ import annotations

from typing import Any

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.memwal.region_spec import RegionSpec, Unsharded
from lancelake.memwal.initialize import bucketed, by_value, details_of, initialize
from lancelake.memwal.settings import recorded
from lancelake.pylance._dataset.guarded import GuardedDataset
from lancelake.pylance._dataset.lsm import ShardWriter, open_shard_writer
from lancelake.pylance._dataset.os_errors import names_dataset, os_errors
from lancelake.pylance._dataset.wal import TableWal, newest
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
        """Durable upserts and deletes in milliseconds, and reads that include them."""
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
        """Add a MemWAL to the table.

        At most one way to choose the shard of a row may be given: a bucket of a column's hash, the
        value of a column, or one shard for all; without any, writers name shards themselves. The
        column must be part of the primary key. Settings of writers are recorded for all of them;
        those without a counterpart here tune official Lance, as `hnsw_params`. Generations have no
        index but that of the key, so that `maintained_indexes` must not name any.
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
        """Return the configuration of the MemWAL; None for a table without one."""
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
        chooses the shards of rows itself. Writes are always durable; the settings of memtables are
        obeyed, and the others tune official Lance.
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
