"""Generations of a region: in memory, replayed from the log, flushed to files."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.errors import CorruptTableError
from lancelake.format.memwal import wal_files, wal_keys
from lancelake.format.memwal.region_manifest import Generation, RegionManifest
from lancelake.index.kind import ROW_ID, VALUE
from lancelake.index.scalar.btree.build import write_one_file
from lancelake.memwal.region import RegionFiles, fenced
from lancelake.memwal.shape import TOMBSTONE, RowShape
from lancelake.scan import stream
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from lancelake.table import write
from lancelake.table.publish import CommitChoices
from lancelake.table.write import WriteOptions

_ROW = "_lancelake_row"


class MemTable:
    """Rows of one generation in the order of their writes.

    Keys are indexed when one is looked up, not by the write, whose caller waits.
    """

    def __init__(self, shape: RowShape, generation: int) -> None:
        self.generation = generation
        self.last_position = 0
        """Position of the last WAL entry whose rows are in this table."""
        self.nbytes = 0
        self.num_rows = 0
        self._shape = shape
        self._batches: list[pa.RecordBatch] = []
        self._lock = threading.Lock()
        self._newest: dict[Any, int] = {}
        self._indexed_batches = 0
        self._indexed_rows = 0

    @property
    def num_batches(self) -> int:
        """Number of batches."""
        return len(self._batches)

    def add(self, batches: Sequence[pa.RecordBatch], position: int) -> None:
        """Add the rows of a WAL entry."""
        for batch in batches:
            self._batches.append(batch)
            self.num_rows += batch.num_rows
            self.nbytes += batch.nbytes
        self.last_position = position

    def newest(self) -> pa.Table:
        """Return the newest row of each key, tombstones included, in the order of the writes."""
        rows = pa.Table.from_batches(self._batches, schema=self._shape.arrow)
        return last_of_each_key(rows, self._shape.keys)

    def find(self, wanted: Iterable[Any]) -> pa.Table:
        """Return the newest rows of some keys, tombstones included."""
        with self._lock:
            self._index()
            numbers = sorted(self._newest[key] for key in wanted if key in self._newest)
        rows = pa.Table.from_batches(self._batches, schema=self._shape.arrow)
        return rows.take(pa.array(numbers, pa.int64()))

    def copy(self) -> MemTable:
        """Return a copy that later writes do not change."""
        other = MemTable(self._shape, self.generation)
        other.last_position, other.nbytes, other.num_rows = (
            self.last_position,
            self.nbytes,
            self.num_rows,
        )
        with self._lock:
            # Here, so that the next copy has only rows written since to index.
            self._index()
            other._batches, other._newest = list(self._batches), dict(self._newest)
            other._indexed_batches, other._indexed_rows = self._indexed_batches, self._indexed_rows
        return other

    def _index(self) -> None:
        for batch in self._batches[self._indexed_batches :]:
            keys = key_values(self._shape, batch)
            numbers = range(self._indexed_rows, self._indexed_rows + len(keys))
            self._newest.update(zip(keys, numbers, strict=True))
            self._indexed_rows += len(keys)
            self._indexed_batches += 1


def last_of_each_key(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the last row of each key, in the order of the rows."""
    last = _last_of_each_number(rows.column(keys[0])) if len(keys) == 1 else None
    if last is None:
        numbers = pa.array(np.arange(rows.num_rows))
        numbered = rows.select(list(keys)).append_column(_ROW, numbers)
        grouped = numbered.group_by(list(keys)).aggregate([(_ROW, "max")])
        last = grouped.column(f"{_ROW}_max").to_numpy()
    return rows if len(last) == rows.num_rows else rows.take(pa.array(np.sort(last)))


def _last_of_each_number(keys: pa.ChunkedArray) -> npt.NDArray[np.int64] | None:
    """Return the last row of each integer; None for other keys, which cannot be sorted so fast."""
    if not pa.types.is_integer(keys.type) or keys.null_count or not len(keys):
        return None
    values = keys.to_numpy()
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    return np.asarray(order[np.append(ordered[1:] != ordered[:-1], True)])


def key_values(shape: RowShape, batch: pa.RecordBatch) -> list[Any]:
    """Return the keys of rows as values that can be hashed."""
    columns = [column.to_pylist() for column in shape.key_columns(batch)]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


ADDRESS = pa.field("_rowaddr", pa.uint64())
_INDEX_PAGE_ROWS = 8192
_KEPT_FIRST = (7, 1)
"""Official releases before this one have the newest of several rows of a key first."""


def write_generation(
    location: Location,
    region: uuid.UUID,
    shape: RowShape,
    memtable: MemTable,
) -> Generation:
    """Write the newest row of each key with the sidecars, and return the generation's entry."""
    name = wal_files.new_generation_dir(location.session.ids.random_u64(), memtable.generation)
    root = location.child(wal_files.generation_dir(region, name))
    rows = memtable.newest().combine_chunks()
    keys = shape.key_columns(rows)
    _write_table(root, shape, rows)
    _write_key_index(root, shape.key_array(rows))
    root.store.put(wal_files.BLOOM_FILE, wal_keys.build(keys))
    return Generation(
        generation=memtable.generation,
        path=name,
        in_memory_bytes=rows.nbytes,
        physical_rows=rows.num_rows,
        primary_key_bytes=sum(key.nbytes for key in keys),
    )


def open_generation(location: Location, region: uuid.UUID, generation: Generation) -> Snapshot:
    """Open the table of a generation."""
    folder = wal_files.generation_dir(region, generation.path)
    return open_snapshot(location.child(folder), Latest())


def read_generation(
    opened: Snapshot, shape: RowShape, *, with_addresses: bool = False
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of a generation with the table's columns, each key once.

    With addresses, the last column has the address of each row in the generation's table.
    """
    batches = _scanned(opened, shape, with_addresses=with_addresses)
    if not _may_repeat(opened):
        yield from batches
        return
    schema = shape.arrow.append(ADDRESS) if with_addresses else shape.arrow
    rows = pa.Table.from_batches(batches, schema=schema).combine_chunks()
    numbered = list(enumerate(key_values(shape, rows)))
    if _has_newest_first(opened):
        numbered.reverse()
    newest = {key: number for number, key in numbered}
    yield from rows.take(pa.array(sorted(newest.values()), pa.int64())).to_batches()


def _scanned(
    opened: Snapshot, shape: RowShape, *, with_addresses: bool
) -> Iterator[pa.RecordBatch]:
    stored = opened.manifest.schema
    wanted = {field.id for field in shape.table.fields}
    columns = tuple(f.name for f in stored.fields if f.id in wanted or f.name == TOMBSTONE)
    stored = stored.select(columns)
    request = ScanRequest(columns=columns, with_row_address=with_addresses)
    for batch in stream.run(plan(opened, request)):
        rows = shape.adopted(batch, stored)
        if with_addresses:
            rows = rows.append_column(ADDRESS, batch.column(ADDRESS.name))
        yield rows


def _may_repeat(opened: Snapshot) -> bool:
    """Whether a generation was written by a library that does not write each key once."""
    writer = opened.manifest.writer_version
    return writer is None or writer.library != "lancelake"


def _has_newest_first(opened: Snapshot) -> bool:
    writer = opened.manifest.writer_version
    if writer is None or writer.library != "lance":
        return False
    return bool(writer.release) and writer.release[:2] < _KEPT_FIRST


def _write_table(root: Location, shape: RowShape, rows: pa.Table) -> None:
    options = WriteOptions(
        schema=shape.stored,
        data_version=shape.data_version,
        max_rows_per_file=max(1, rows.num_rows),
        choices=CommitChoices(after=()),
    )
    planned = write.plan(None, root, rows.schema, options)
    write.commit(planned, write.run(planned, rows.to_reader()))


def _write_key_index(root: Location, keys: pa.Array) -> None:
    order = pc.array_sort_indices(keys)
    values = keys.take(order)
    ids = pa.array(np.asarray(order).astype(np.uint64))
    folder = SegmentFolder(place=FileAt(root=root, path=wal_files.KEY_INDEX))
    batch = pa.RecordBatch.from_arrays([values, ids], names=[VALUE, ROW_ID])
    write_one_file(folder, keys.type, [batch], _INDEX_PAGE_ROWS)


def replayed(
    files: RegionFiles,
    manifest: RegionManifest,
    shape: RowShape,
    *,
    last: int,
    epoch: int | None = None,
) -> Iterator[MemTable]:
    """Yield the memtables of the entries up to a position, one for each generation, in order.

    A writer gives its epoch: an entry of a later one means that the writer was replaced.
    """
    table = MemTable(shape, manifest.current_generation)
    for position in range(manifest.replay_after + 1, last + 1):
        entry = files.entry(position)
        if epoch is not None and entry.writer_epoch > epoch:
            raise fenced(files)
        if entry.is_sentinel:
            continue
        generation = table.generation if entry.generation is None else entry.generation
        if generation < manifest.current_generation:
            # Already flushed: official releases may record a position that is one too low.
            continue
        if generation != table.generation:
            if generation != table.generation + 1 or not table.num_rows:
                msg = (
                    f"WAL entry {position} of region {files.region} has rows of generation "
                    f"{generation} after those of generation {table.generation}"
                )
                raise CorruptTableError(msg, region=str(files.region))
            yield table
            table = MemTable(shape, generation)
        table.add([shape.adopted(batch) for batch in entry.batches], position)
    if table.num_rows:
        yield table
