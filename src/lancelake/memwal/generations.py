"""Generations: small tables with the flushed rows of a region."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.data.fragment_writer import write_fragments
from lancelake.data.write_task import WriteTask
from lancelake.format.memwal import key_bloom, names
from lancelake.format.memwal.region_manifest import Generation
from lancelake.format.operations import Overwrite
from lancelake.index.kind import ROW_ID, VALUE
from lancelake.index.scalar.btree.build import write_one_file
from lancelake.memwal.memtable import MemTable, key_values
from lancelake.memwal.shape import TOMBSTONE, RowShape
from lancelake.scan import stream
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.publish import CommitChoices, Surroundings, new_transaction, publish_first

ADDRESS = pa.field("_rowaddr", pa.uint64())
_INDEX_PAGE_ROWS = 8192
_KEPT_FIRST = (7, 1)
"""Official releases before this one have the newest of several rows of a key first."""


def write_generation(
    location: Location,
    region: uuid.UUID,
    shape: RowShape,
    memtable: MemTable,
    surroundings: Surroundings,
) -> Generation:
    """Write the newest row of each key with the sidecars, and return the generation's entry."""
    name = names.new_generation_dir(surroundings.ids.random_u64(), memtable.generation)
    root = location.child(names.generation_dir(region, name))
    rows = memtable.newest().combine_chunks()
    keys = shape.key_columns(rows)
    _write_table(root, shape, rows, surroundings)
    _write_key_index(root, shape.key_array(rows))
    open_store(root).put(names.BLOOM_FILE, key_bloom.build(keys))
    return Generation(
        generation=memtable.generation,
        path=name,
        in_memory_bytes=rows.nbytes,
        physical_rows=rows.num_rows,
        primary_key_bytes=sum(key.nbytes for key in keys),
    )


def open_generation(location: Location, region: uuid.UUID, generation: Generation) -> Snapshot:
    """Open the table of a generation."""
    folder = names.generation_dir(region, generation.path)
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


def _write_table(
    root: Location, shape: RowShape, rows: pa.Table, surroundings: Surroundings
) -> None:
    task = WriteTask(
        root=root,
        schema=shape.stored,
        file_version=shape.data_version,
        max_rows_per_file=max(1, rows.num_rows),
        newest_readers_only=True,
    )
    fragments = write_fragments(task, rows.to_reader(), ids=surroundings.ids)
    choices = CommitChoices(data_version=shape.data_version, after=(), surroundings=surroundings)
    operation = Overwrite(fragments=fragments, schema=shape.stored)
    publish_first(root, new_transaction(operation, 0, choices), choices)


def _write_key_index(root: Location, keys: pa.Array) -> None:
    order = pc.array_sort_indices(keys)
    values = keys.take(order)
    ids = pa.array(np.asarray(order).astype(np.uint64))
    folder = SegmentFolder(place=FileAt(root=root, path=names.KEY_INDEX))
    batch = pa.RecordBatch.from_arrays([values, ids], names=[VALUE, ROW_ID])
    write_one_file(folder, keys.type, [batch], _INDEX_PAGE_ROWS)
