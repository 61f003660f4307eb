"""Tail of a region: the WAL entries, as they are stored."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CorruptTableError, InvalidRequestError, ObjectNotFoundError, naming
from lancelake.format.frozen import FrozenMap
from lancelake.format.memwal import names, wal_entry
from lancelake.memwal.region_files import RegionFiles
from lancelake.memwal.shape import RowShape


@dataclass(frozen=True, slots=True, kw_only=True)
class TailEntry:
    """A WAL entry with its rows, tombstones included, in the table's columns."""

    position: int
    writer_epoch: int
    generation: int | None
    is_sentinel: bool
    units: FrozenMap[str, int]
    """Last batch of each streaming query in the region, up to this entry."""
    rows: pa.Table


def read_entries(
    base: Snapshot, region: uuid.UUID, after: int | None = None
) -> Iterator[TailEntry]:
    """Yield the WAL entries of a region after a position, by default those not flushed.

    Entries that garbage collection has removed are skipped.
    """
    with naming(base.location.uri, base.version):
        files = RegionFiles.at(base.location, region)
        manifest = files.latest()
        if manifest is None:
            raise InvalidRequestError(f"the table has no region {region}", region=str(region))
        start = manifest.replay_after if after is None else after
        shape = RowShape.of(base)
        for position in files.positions():
            if position > start:
                found = _read(files, shape, position)
                if found is not None:
                    yield found
                elif position > manifest.replay_after:
                    msg = f"the WAL of region {region} has lost the entry at position {position}"
                    raise CorruptTableError(msg, region=str(region))


def _read(files: RegionFiles, shape: RowShape, position: int) -> TailEntry | None:
    try:
        data = files.entry_bytes(position)
    except ObjectNotFoundError:
        return None
    entry = wal_entry.decode(data, path=names.wal_entry(files.region, position))
    batches = [shape.adopted(batch) for batch in entry.batches]
    return TailEntry(
        position=position,
        writer_epoch=entry.writer_epoch,
        generation=entry.generation,
        is_sentinel=entry.is_sentinel,
        units=entry.units,
        rows=pa.Table.from_batches(batches, schema=shape.arrow),
    )
