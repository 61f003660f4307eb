"""MemWAL as pylance offers it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

import pyarrow as pa

from lancelake.core.table import Table
from lancelake.core.values import wal as core_wal
from lancelake.core.values.metadata import MEM_WAL, Snapshot, key_names, public_schema
from lancelake.core.values.reads import DISTANCE
from lancelake.errors import InvalidRequestError, UnsupportedError, naming
from lancelake.pylance._dataset.arguments import os_errors
from lancelake.pylance._dataset.searching import nearest_of
from lancelake.pylance._dataset.state import DatasetState
from lancelake.pylance._dataset.wal import TableWal
from lancelake.pylance._dataset.wal_reads import key_rows, newest, rows_of
from lancelake.pylance._values.opened import call_text, chosen, given, version_text
from lancelake.pylance._values.shards import shard_uuid, shown_spec

_MS = 1000
_DISTANCE = pa.field(DISTANCE, pa.float32())


class ShardSnapshot:
    """The flushed generations of a shard that a scan reads."""

    def __init__(self, shard_id: str) -> None:
        self._region = shard_uuid(shard_id)
        self._spec_id = 0
        self._current = 1
        self._sstables: tuple[core_wal.Generation, ...] = ()

    def __repr__(self) -> str:
        count = len(self._sstables)
        return f"ShardSnapshot(shard_id={self.shard_id!r}, sstables={count})"

    @property
    def shard_id(self) -> str:
        """Id of the shard."""
        return str(self._region)

    def with_spec_id(self, spec_id: int) -> ShardSnapshot:
        """Set the id of the sharding spec."""
        self._spec_id = spec_id
        return self

    def with_current_generation(self, generation: int) -> ShardSnapshot:
        """Set the generation that is not flushed yet."""
        self._current = generation
        return self

    def with_sstable(self, generation: int, path: str) -> ShardSnapshot:
        """Add a flushed generation by the name of its folder."""
        self._sstables += (core_wal.Generation(generation=generation, path=path),)
        return self

    def _rows(self, base: Snapshot) -> core_wal.RegionRows:
        """Return the generations that a version does not have."""
        merged = Table(base).wal.details().progress().get(self._region, 0)
        left = [g for g in self._sstables if g.generation > merged]
        ordered = tuple(sorted(left, key=lambda g: g.generation))
        return core_wal.RegionRows(region=self._region, generations=ordered)


class ShardWriter:
    """Writer of one shard; obtained from `LanceDataset.mem_wal_writer`."""

    def __init__(self, _raw: core_wal.RegionWriter, base: Snapshot) -> None:
        self._raw = _raw
        self._base = base

    def __repr__(self) -> str:
        return call_text(self, self._base.location.uri, shard_id=self.shard_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self._raw.__exit__(exc_type, exc_val, exc_tb)

    @property
    def shard_id(self) -> str:
        """Id of the shard."""
        return str(self._raw.region)

    def put(self, data: Any, *, schema: pa.Schema | None = None) -> None:
        """Insert rows, or replace those of the same key; durable when this returns."""
        with os_errors():
            self._raw.put(rows_of(data, schema or public_schema(self._base.manifest.schema)))

    def delete(self, keys: Any, *, schema: pa.Schema | None = None) -> None:
        """Delete rows by key; other columns are ignored. Durable when this returns."""
        with os_errors():
            rows = keys if schema is None else rows_of(keys, schema)
            self._raw.delete(key_rows(self._base, rows))

    def close(self) -> None:
        """Flush and stop."""
        self._raw.close()

    def stats(self) -> dict[str, int]:
        """Return how much was written since the writer was opened."""
        counts = self._raw.counts()
        return {
            "put_count": counts.puts,
            "put_time_ms": int(counts.put_s * _MS),
            "wal_flush_count": counts.entries,
            "wal_flush_bytes": counts.entry_bytes,
            "wal_flush_time_ms": int(counts.entry_s * _MS),
            "memtable_flush_count": counts.flushes,
            "memtable_flush_rows": counts.flushed_rows,
            "memtable_flush_time_ms": int(counts.flush_s * _MS),
        }

    def memtable_stats(self) -> dict[str, int]:
        """Return the size of the rows in memory, which a closed writer has flushed."""
        *frozen, current = self._raw.in_memory()
        return {
            "row_count": current.num_rows,
            "batch_count": current.num_batches,
            "estimated_size_bytes": current.nbytes,
            "generation": current.generation,
            "frozen_count": len(frozen),
            "frozen_bytes": sum(table.nbytes for table in frozen),
        }

    def lsm_scanner(self, shard_snapshots: list[ShardSnapshot] | None = None) -> LsmScanner:
        """Return a scanner of the table, the given shards, and this shard with its memory."""
        table = newest(self._base)
        mine = self._raw.region
        own = table.wal.view(core_wal.Freshness.DURABLE, {mine: self._raw})
        others = [s._rows(table.snapshot) for s in shard_snapshots or () if s._region != mine]
        regions = [r for r in own.regions if r.region == mine]
        return LsmScanner(replace(own, regions=(*regions, *others)))


class LsmScanner:
    """Scan of the newest row of each key, in the table and in shards.

    Generations that are already merged into the table are not read, since the table may have newer
    rows.
    """

    def __init__(self, _raw: core_wal.MemWalView) -> None:
        self._view = _raw
        self._request = core_wal.ViewRequest()

    def __repr__(self) -> str:
        return version_text(self, self._view.base, **chosen(self._request))

    @staticmethod
    def from_snapshots(dataset: Any, shard_snapshots: list[ShardSnapshot]) -> LsmScanner:
        """Return a scanner of a dataset and generations of shards."""
        return LsmScanner(_view(dataset, shard_snapshots))

    def project(self, columns: list[str]) -> LsmScanner:
        """Return only these columns."""
        return self._with(columns=tuple(columns))

    def filter(self, expr: str) -> LsmScanner:
        """Return only the newest rows that match SQL."""
        return self._with(filter=expr)

    def limit(self, n: int | None = None, offset: int | None = None) -> LsmScanner:
        """Return at most `n` rows, after `offset` rows."""
        return self._with(limit=n, offset=offset or 0)

    def with_row_address(self) -> LsmScanner:
        """Add `_rowaddr`: the address in the table or the generation, null for rows in memory."""
        return self._with(with_row_address=True)

    def with_memtable_gen(self) -> LsmScanner:
        """Add `_memtable_gen`: the generation of each row, 0 for rows of the table."""
        return self._with(with_generation=True)

    def to_batch(self) -> pa.RecordBatch:
        """Read everything as one batch."""
        rows = self.to_table().combine_chunks()
        batches = rows.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], rows.schema)

    def to_batches(self) -> list[pa.RecordBatch]:
        """Read everything, as batches."""
        with os_errors():
            return list(self._view.scan(self._request))

    def to_table(self) -> pa.Table:
        """Read everything."""
        with os_errors():
            return self._view.scan(self._request).read_all()

    def count_rows(self) -> int:
        """Count the rows of the result."""
        return sum(batch.num_rows for batch in self.to_batches())

    def _with(self, **changes: Any) -> LsmScanner:
        self._request = replace(self._request, **changes)
        return self


class ExecutionPlan:
    """A search that is ready to run."""

    def __init__(
        self, _raw: Callable[[], pa.Table], schema: pa.Schema, text: str, base: pa.Schema
    ) -> None:
        self._run = _raw
        self._schema = schema
        self._text = text
        self._base = base

    def __repr__(self) -> str:
        return call_text(self, self._text)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        return self._schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """Schema of the table."""
        return self._base

    def explain(self) -> str:
        """Describe the sources and the result."""
        return self._text

    def to_reader(self) -> pa.RecordBatchReader:
        """Run the search, and return its rows as a stream."""
        return self.to_table().to_reader()

    def to_batches(self) -> list[pa.RecordBatch]:
        """Run the search, and return its rows as batches."""
        return list(self.to_table().to_batches())

    def to_table(self) -> pa.Table:
        """Run the search, and return its rows."""
        with os_errors():
            return self._run()


class LsmPointLookupPlanner:
    """Lookup of one key in a dataset and generations of shards."""

    def __init__(
        self,
        dataset: Any,
        shard_snapshots: list[ShardSnapshot],
        pk_columns: list[str] | None = None,
    ) -> None:
        self._view = _view(dataset, shard_snapshots)
        _ensure_key(self._view, pk_columns)

    def __repr__(self) -> str:
        return version_text(self, self._view.base)

    def plan_lookup(self, pk_value: pa.Array, columns: list[str] | None = None) -> ExecutionPlan:
        """Prepare the lookup of a key, given as an array of one value, or of one struct."""
        if len(pk_value) != 1:
            raise ValueError(f"pk_value must contain exactly one row, got {len(pk_value)}")
        view, names = self._view, self._view.shape.keys
        if pa.types.is_struct(pk_value.type):
            keys: Any = pa.RecordBatch.from_struct_array(pk_value)
        else:
            keys = pk_value
        every = public_schema(view.shape.table)
        shown = every if columns is None else pa.schema([every.field(name) for name in columns])

        def run() -> pa.Table:
            return core_wal.find_rows(view, key_rows(view.base, keys)).select(shown.names)

        return ExecutionPlan(run, shown, _explain("LsmPointLookup", view, names), every)


class LsmVectorSearchPlanner:
    """Vector search in a dataset and generations of shards."""

    def __init__(
        self,
        dataset: Any,
        shard_snapshots: list[ShardSnapshot],
        vector_column: str,
        pk_columns: list[str] | None = None,
        distance_type: str | None = None,
        filter: str | None = None,
    ) -> None:
        self._view = _view(dataset, shard_snapshots)
        _ensure_key(self._view, pk_columns)
        self._column, self._metric, self._filter = vector_column, distance_type, filter

    def __repr__(self) -> str:
        options = {"metric": self._metric, "filter": self._filter}
        return version_text(self, self._view.base, column=self._column, **options)

    def plan_search(
        self,
        query: pa.Array,
        k: int = 10,
        nprobes: int = 20,
        columns: list[str] | None = None,
        refine_base_table: bool = False,
        overfetch_factor: float = 1.0,
    ) -> ExecutionPlan:
        """Prepare a search of the `k` nearest rows.

        `refine_base_table` and `overfetch_factor` tune official Lance: rows that newer ones replace
        never take part in a search here.
        """
        if k <= 0:
            raise ValueError(f"k must be positive, got {k}")
        if nprobes <= 0:
            raise ValueError(f"nprobes must be positive, got {nprobes}")
        if not math.isfinite(overfetch_factor) or overfetch_factor < 1.0:
            raise ValueError(f"overfetch_factor must be finite and >= 1.0, got {overfetch_factor}")
        view, every = self._view, public_schema(self._view.shape.table)
        names = None if columns is None else tuple(columns)
        search = core_wal.ViewSearch(view=view, columns=names, filter=self._filter)
        # Official Lance uses the L2 distance unless another one is named.
        options = {"q": query, "metric": self._metric or "l2", "nprobes": nprobes}
        nearest = replace(nearest_of(view.base, {**options, "column": self._column}), k=k)
        shown = pa.schema([*(every.field(n) for n in names or every.names), _DISTANCE])
        text = _explain("LsmVectorSearch", view, view.shape.keys)
        return ExecutionPlan(lambda: search.nearest(nearest), shown, text, every)


def open_shard_writer(
    table: Table, shard_id: str, settings: Mapping[str, int | bool]
) -> ShardWriter:
    """Claim a shard of a table."""
    region, base = shard_uuid(shard_id), table.snapshot
    with naming(base.location.uri, base.version):
        details = table.wal.details()
        options = core_wal.writer_options(details.writer_defaults, settings)
        new = core_wal.region_of(details.spec(), region)
        return ShardWriter(core_wal.RegionWriter(base, new, options=options), base)


def _view(dataset: Any, shards: list[ShardSnapshot]) -> core_wal.MemWalView:
    base: Snapshot = dataset._snapshot
    with naming(base.location.uri, base.version):
        regions = tuple(shard._rows(base) for shard in shards)
        return core_wal.MemWalView(base=base, shape=core_wal.RowShape.of(base), regions=regions)


def _ensure_key(view: core_wal.MemWalView, columns: list[str] | None) -> None:
    own = key_names(view.base.manifest.schema)
    if columns is not None and tuple(columns) != own:
        raise InvalidRequestError(
            f"the table's primary key is {', '.join(own)}, not {', '.join(columns)}",
            table=view.base.location.uri,
            version=view.base.version,
        )


def _explain(name: str, view: core_wal.MemWalView, keys: tuple[str, ...]) -> str:
    lines = [f"{name}: key=[{', '.join(keys)}]"]
    for region in view.regions:
        numbers = ", ".join(str(g.generation) for g in reversed(region.generations))
        lines.append(f"  Shard {region.region}: generations=[{numbers}]")
    lines.append(f"  Table {view.base.location.uri}: version={view.base.version}")
    return "\n".join(lines)


_SHARDING = (
    "maintained_indexes",
    "bucket_column",
    "num_buckets",
    "identity_column",
    "unsharded",
    "hnsw_params",
)


class DatasetMemWal(DatasetState):
    """Methods for the MemWAL of a table."""

    @property
    def wal(self) -> TableWal:
        """Durable upserts and deletes in milliseconds, and reads that include them.

        Examples:
            >>> ds.wal
            TableWal('people.lance')
        """
        return TableWal(self)

    @os_errors()
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
        table = newest(self._snapshot)
        names = bucket_column, num_buckets, identity_column
        spec = _spec(table.snapshot, *names, unsharded=unsharded)
        self._snapshot = table.wal.initialize(
            spec,
            self._choices,
            writer_defaults=core_wal.recorded(settings),
            maintain_all_indexes=maintained_indexes is None,
        )

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
        details = self._table.wal.details()
        return {
            "num_shards": details.num_regions,
            "maintained_indexes": list(details.maintained_indexes),
            "maintain_all_indexes": details.maintain_all_indexes,
            "writer_config_defaults": dict(details.writer_defaults),
            "sharding_specs": [shown_spec(spec) for spec in details.specs],
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
) -> core_wal.RegionSpec | None:
    by_bucket = bucket_column is not None or num_buckets is not None
    if by_bucket + (identity_column is not None) + unsharded > 1:
        raise InvalidRequestError("at most one sharding mode may be selected")
    if unsharded:
        return core_wal.Unsharded()
    if identity_column is not None:
        return core_wal.by_value(base, identity_column)
    if not by_bucket:
        return None
    if bucket_column is None or num_buckets is None:
        raise ValueError("bucket sharding requires both `bucket_column` and `num_buckets`")
    return core_wal.bucketed(base, bucket_column, num_buckets)
