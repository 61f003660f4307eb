"""Writers, scans and lookups of single shards, as in pylance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, naming
from lancelake.format.arrow_schema import public_schema
from lancelake.format.memwal.region_manifest import Generation
from lancelake.format.primary_key import key_names
from lancelake.memwal.initialize import details_of
from lancelake.memwal.lookup import find_rows
from lancelake.memwal.routing import region_of
from lancelake.memwal.search import ViewSearch
from lancelake.memwal.settings import writer_options
from lancelake.memwal.shape import RowShape
from lancelake.memwal.view import Freshness, MemWalView, RegionRows, ViewRequest, open_view
from lancelake.memwal.writer import RegionWriter
from lancelake.pylance._dataset.arguments.os_errors import os_errors
from lancelake.pylance._dataset.mem_wal.wal_rows import key_rows, newest, rows_of
from lancelake.pylance._dataset.scanning.searching import nearest_of
from lancelake.pylance._values.reprs import call_text, chosen, version_text
from lancelake.pylance._values.shards import shard_uuid
from lancelake.scan.nearest import DISTANCE

_MS = 1000
_DISTANCE = pa.field(DISTANCE, pa.float32())


class ShardSnapshot:
    """The flushed generations of a shard that a scan reads."""

    def __init__(self, shard_id: str) -> None:
        self._region = shard_uuid(shard_id)
        self._spec_id = 0
        self._current = 1
        self._sstables: tuple[Generation, ...] = ()

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
        self._sstables += (Generation(generation=generation, path=path),)
        return self

    def _rows(self, base: Snapshot) -> RegionRows:
        """Return the generations that a version does not have."""
        merged = details_of(base).progress().get(self._region, 0)
        left = [g for g in self._sstables if g.generation > merged]
        ordered = tuple(sorted(left, key=lambda g: g.generation))
        return RegionRows(region=self._region, generations=ordered)


class ShardWriter:
    """Writer of one shard; obtained from `LanceDataset.mem_wal_writer`."""

    def __init__(self, _raw: RegionWriter, base: Snapshot) -> None:
        self._raw = _raw
        self._base = base

    def __repr__(self) -> str:
        return call_text(self, self._base.location.uri, shard_id=self.shard_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
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
        found = self._raw.counts()
        return {
            "put_count": found.puts,
            "put_time_ms": int(found.put_s * _MS),
            "wal_flush_count": found.entries,
            "wal_flush_bytes": found.entry_bytes,
            "wal_flush_time_ms": int(found.entry_s * _MS),
            "memtable_flush_count": found.flushes,
            "memtable_flush_rows": found.flushed_rows,
            "memtable_flush_time_ms": int(found.flush_s * _MS),
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
        base = newest(self._base)
        mine = self._raw.region
        own = open_view(base, Freshness.DURABLE, {mine: self._raw})
        others = [s._rows(base) for s in shard_snapshots or () if s._region != mine]
        regions = [r for r in own.regions if r.region == mine]
        return LsmScanner(replace(own, regions=(*regions, *others)))


class LsmScanner:
    """Scan of the newest row of each key, in the table and in shards.

    Generations that are already merged into the table are not read, since the table may have newer
    rows.
    """

    def __init__(self, _raw: MemWalView) -> None:
        self._view = _raw
        self._request = ViewRequest()

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
        found = self.to_table().combine_chunks()
        batches = found.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], found.schema)

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
            return find_rows(view, key_rows(view.base, keys)).select(shown.names)

        return ExecutionPlan(run, shown, _explained("LsmPointLookup", view, names), every)


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
        search = ViewSearch(view=view, columns=names, filter=self._filter)
        # Official Lance uses the L2 distance unless another one is named.
        given = {"q": query, "metric": self._metric or "l2", "nprobes": nprobes}
        nearest = replace(nearest_of(view.base, {**given, "column": self._column}), k=k)
        shown = pa.schema([*(every.field(n) for n in names or every.names), _DISTANCE])
        text = _explained("LsmVectorSearch", view, view.shape.keys)
        return ExecutionPlan(lambda: search.nearest(nearest), shown, text, every)


def open_shard_writer(
    base: Snapshot, shard_id: str, settings: Mapping[str, int | bool]
) -> ShardWriter:
    """Claim a shard of a table."""
    region = shard_uuid(shard_id)
    with naming(base.location.uri, base.version):
        details = details_of(base)
        options = writer_options(details.writer_defaults, settings)
        new = region_of(details.spec(), region)
        return ShardWriter(RegionWriter(base, new, options=options), base)


def _view(dataset: Any, shards: list[ShardSnapshot]) -> MemWalView:
    base: Snapshot = dataset._snapshot
    with naming(base.location.uri, base.version):
        regions = tuple(shard._rows(base) for shard in shards)
        return MemWalView(base=base, shape=RowShape.of(base), regions=regions)


def _ensure_key(view: MemWalView, columns: list[str] | None) -> None:
    own = key_names(view.base.manifest.schema)
    if columns is not None and tuple(columns) != own:
        raise InvalidRequestError(
            f"the table's primary key is {', '.join(own)}, not {', '.join(columns)}",
            table=view.base.location.uri,
            version=view.base.version,
        )


def _explained(name: str, view: MemWalView, keys: tuple[str, ...]) -> str:
    lines = [f"{name}: key=[{', '.join(keys)}]"]
    for region in view.regions:
        numbers = ", ".join(str(g.generation) for g in reversed(region.generations))
        lines.append(f"  Shard {region.region}: generations=[{numbers}]")
    lines.append(f"  Table {view.base.location.uri}: version={view.base.version}")
    return "\n".join(lines)
