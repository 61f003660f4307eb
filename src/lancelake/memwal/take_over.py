"""Take-over of regions without a live writer: flush of their WAL tails, and seals."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import InvalidRequestError
from lancelake.format.memwal.region_manifest import RegionManifest
from lancelake.memwal.initialize import details_of
from lancelake.memwal.region_files import RegionFiles, list_regions
from lancelake.memwal.status import wal_status
from lancelake.memwal.writer import RegionWriter
from lancelake.memwal.writer_options import WriterOptions

_INLINE = WriterOptions(flushes_in_background=False)


@names_table
def flush_tails(
    base: Snapshot,
    regions: Sequence[uuid.UUID] | None = None,
    *,
    options: WriterOptions = _INLINE,
) -> tuple[uuid.UUID, ...]:
    """Flush the WAL tails of regions, by default of all; return those that had one.

    This replaces the writers of these regions: they are fenced.
    """
    flushed: list[uuid.UUID] = []
    for status in wal_status(base).regions:
        if status.tail_entries and (regions is None or status.region in regions):
            with RegionWriter(base, status.manifest, options=options):
                flushed.append(status.region)
    return tuple(flushed)


@names_table
def seal_regions(
    base: Snapshot,
    regions: Sequence[uuid.UUID] | None = None,
    *,
    options: WriterOptions = _INLINE,
) -> tuple[uuid.UUID, ...]:
    """Flush and seal regions; return those that were not sealed before."""
    details_of(base)
    sealed: list[uuid.UUID] = []
    for manifest in _manifests(base, regions):
        if manifest.is_active:
            RegionWriter(base, manifest, options=options).seal()
            sealed.append(manifest.region_id)
    return tuple(sealed)


def _manifests(base: Snapshot, regions: Sequence[uuid.UUID] | None) -> Iterator[RegionManifest]:
    for region in list_regions(base.location) if regions is None else regions:
        found = RegionFiles.at(base.location, region).latest()
        if found is None:
            raise InvalidRequestError(f"the table has no region {region}", region=str(region))
        yield found
