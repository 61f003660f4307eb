"""Replay of a region's WAL: the rows that no generation has yet."""

from __future__ import annotations

from collections.abc import Iterator

from lancelake.errors import CorruptTableError
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.memwal.claim import fenced
from lancelake.memwal.memtable import MemTable
from lancelake.memwal.region_files import RegionFiles
from lancelake.memwal.shape import RowShape


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
