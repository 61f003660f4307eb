"""Batches of streaming queries, each written to a region exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import ContentionError, ObjectNotFoundError, WriterFencedError
from lancelake.format.frozen import FrozenMap
from lancelake.format.memwal import names, wal_entry
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.memwal.region_files import RegionFiles
from lancelake.memwal.writer import RegionWriter
from lancelake.memwal.writer_options import WriterOptions
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore

_INLINE = WriterOptions(flushes_in_background=False)
_ATTEMPTS = 5
_MOST_QUERIES = 256
_FLUSHED_ROWS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A batch of a streaming query; the batches of a query have ascending numbers."""

    query: str
    batch: int


@names_table
def write_once(
    base: Snapshot,
    region: RegionManifest,
    batches: Sequence[pa.RecordBatch],
    unit: Unit,
    *,
    options: WriterOptions = _INLINE,
    flushed_rows: int = _FLUSHED_ROWS,
    store: ObjectStore | None = None,
) -> bool:
    """Write the rows of a batch for one region; return False if the region already has the batch.

    `region` is the state of the region if it does not exist yet, and `batches` are rows as
    `RowShape` converts them: they become one WAL entry. The tail is flushed when it has
    `flushed_rows`. Of several tasks for the same batch one writes it, and all return; the caller
    must not begin the next batch of the query before.
    """
    if not batches:
        return False
    for _ in range(_ATTEMPTS):
        try:
            writer = RegionWriter(base, region, options=options, store=store)
            known = last_batches(writer.files)
            if known.get(unit.query, -1) >= unit.batch:
                writer.close(flush=False)
                return False
            writer.write(batches, _with(known, unit))
            writer.close(flush=writer.tail_rows >= flushed_rows)
        except WriterFencedError:
            # Another task has the region now, and perhaps it writes the same batch.
            continue
        return True
    msg = f"batch {unit.batch} of query {unit.query} was fenced {_ATTEMPTS} times"
    raise ContentionError(msg, region=str(region.region_id))


def last_batches(files: RegionFiles) -> Mapping[str, int]:
    """Return the last batch of each query in a region: the newest entry that has any has them all.

    Garbage collection keeps that entry.
    """
    for position in reversed(files.positions()):
        try:
            data = files.entry_bytes(position)
        except ObjectNotFoundError:
            # Collected since the listing: a later entry has been read, or follows.
            continue
        found = wal_entry.decode(data, path=names.wal_entry(files.region, position)).units
        if found:
            return found
    return FrozenMap()


def region_batches(
    base: Snapshot, region: RegionManifest, store: ObjectStore | None = None
) -> Mapping[str, int]:
    """Return the last batch of each query in a region, without claiming it."""
    files = RegionFiles(store=store or open_store(base.location), region=region.region_id)
    return last_batches(files)


def _with(known: Mapping[str, int], unit: Unit) -> dict[str, int]:
    """Return the last batches with one more; of many queries those that wrote last."""
    others = [(query, last) for query, last in known.items() if query != unit.query]
    return dict([*others, (unit.query, unit.batch)][-_MOST_QUERIES:])
