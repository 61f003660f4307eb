"""Point lookup: the newest rows of some keys, without reading those of others."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.data.deletion_files import known_deletions
from lancelake.errors import ObjectNotFoundError
from lancelake.expr.condition import Column, Membership
from lancelake.expr.predicate import joined
from lancelake.format.arrow_schema import public_schema
from lancelake.format.memwal import key_bloom, names
from lancelake.format.row_address import row_addresses
from lancelake.index.kind import SegmentFacts
from lancelake.index.row_ids import U64Array
from lancelake.index.scalar.btree.files import LOOKUP_FILE
from lancelake.index.scalar.btree.segment import BTreeSegment
from lancelake.memwal.generations import open_generation, read_generation
from lancelake.memwal.memtable import key_values
from lancelake.memwal.shape import RowShape, live
from lancelake.memwal.view import MemWalView
from lancelake.scan import stream
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.take import take_at
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt


def find_rows(view: MemWalView, keys: pa.Table | pa.RecordBatch) -> pa.Table:
    """Return the newest rows of keys, given by the key columns, in any order."""
    shape = view.shape
    (*given,) = shape.tombstones(keys)
    shown = public_schema(shape.table)
    if not given:
        return shown.empty_table()
    wanted = _unique(shape, pa.Table.from_batches(given))
    found: list[pa.RecordBatch] = []
    for batch in _unmerged(view, wanted):
        found.append(live(batch))
        wanted = _without(shape, wanted, batch)
    if wanted.num_rows:
        found += _in_base(view.base, shape, wanted)
    batches = [pa.RecordBatch.from_arrays(b.columns, schema=shown) for b in found if b.num_rows]
    return pa.Table.from_batches(batches, schema=shown)


def _unmerged(view: MemWalView, wanted: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield rows of keys from the newest source to the oldest, tombstones included."""
    shape = view.shape
    for region in view.regions:
        for memtable in reversed(region.memtables):
            rows = memtable.find(key_values(shape, wanted)).combine_chunks()
            wanted = yield from _taken(shape, wanted, rows.to_batches())
        for generation in reversed(region.generations):
            if wanted.num_rows:
                opened = open_generation(view.base.location, region.region, generation)
                rows = _in_generation(opened, shape, wanted)
                wanted = yield from _taken(shape, wanted, rows.to_batches())


def _taken(
    shape: RowShape, wanted: pa.RecordBatch, found: Sequence[pa.RecordBatch]
) -> Generator[pa.RecordBatch, None, pa.RecordBatch]:
    for batch in found:
        yield batch
        wanted = _without(shape, wanted, batch)
    return wanted


def _in_generation(opened: Snapshot, shape: RowShape, wanted: pa.RecordBatch) -> pa.Table:
    wanted = _possible(opened, shape, wanted)
    if not wanted.num_rows:
        return shape.arrow.empty_table()
    addresses = _indexed(opened, shape, wanted)
    if addresses is not None and len(addresses) <= wanted.num_rows:
        rows = take_at(opened, addresses, ScanRequest())
        adopted = [shape.adopted(b, opened.manifest.schema) for b in rows.to_batches()]
        found = pa.Table.from_batches(adopted, schema=shape.arrow)
        if len(set(key_values(shape, found))) == found.num_rows:
            return found
    # A generation of an early release: without an index, or with several rows of a key.
    keys = shape.key_array(wanted)
    batches = read_generation(opened, shape)
    every = (b.filter(pc.is_in(shape.key_array(b), value_set=keys)) for b in batches)
    return pa.Table.from_batches(every, schema=shape.arrow)


def _possible(opened: Snapshot, shape: RowShape, wanted: pa.RecordBatch) -> pa.RecordBatch:
    """Return the keys that the bloom filter does not exclude."""
    columns = shape.key_columns(wanted)
    if not key_bloom.is_usable([column.type for column in columns]):
        return wanted
    try:
        data = open_store(opened.location).get(names.BLOOM_FILE)
    except ObjectNotFoundError:
        return wanted
    return wanted.filter(pa.array(key_bloom.may_contain(data, columns)))


def _indexed(opened: Snapshot, shape: RowShape, wanted: pa.RecordBatch) -> U64Array | None:
    """Return the addresses of live rows by the key index; None for a generation without one."""
    fragments = opened.manifest.fragments
    folder = SegmentFolder(place=FileAt(root=opened.location, path=names.KEY_INDEX))
    lookup = folder.file(LOOKUP_FILE)
    if len(fragments) != 1 or not open_store(lookup.root).exists(lookup.path):
        return None
    keys = shape.key_array(wanted)
    facts = SegmentFacts(folder=folder, dtype=keys.type, details=None, index_version=0)
    column = Column(path=(names.KEY_INDEX,), dtype=keys.type)
    answer = BTreeSegment(facts).answer(Membership(column=column, values=keys))
    if answer is None or answer.surely_true.is_inverted:
        return None
    offsets = answer.surely_true.ids.to_array()
    gone = known_deletions(opened.files, fragments[0])
    kept = np.array([offset for offset in offsets.tolist() if offset not in gone], dtype=np.uint64)
    return row_addresses(fragments[0].id, kept)


def _in_base(base: Snapshot, shape: RowShape, wanted: pa.RecordBatch) -> list[pa.RecordBatch]:
    conditions = [
        Membership(column=Column(path=(name,), dtype=values.type), values=pc.unique(values))
        for name, values in zip(shape.keys, shape.key_columns(wanted), strict=True)
    ]
    rows = stream.run(plan(base, ScanRequest(filter=joined(conditions))))
    keys = shape.key_array(wanted)
    return [b.filter(pc.is_in(shape.key_array(b), value_set=keys)) for b in rows]


def _unique(shape: RowShape, keys: pa.Table) -> pa.RecordBatch:
    (batch,) = keys.combine_chunks().to_batches()
    newest: dict[Any, int] = {key: n for n, key in enumerate(key_values(shape, batch))}
    return batch.take(pa.array(newest.values(), pa.int64()))


def _without(shape: RowShape, keys: pa.RecordBatch, found: pa.RecordBatch) -> pa.RecordBatch:
    is_found = pc.is_in(shape.key_array(keys), value_set=shape.key_array(found))
    return keys.filter(pc.invert(is_found))
