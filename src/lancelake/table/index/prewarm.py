"""Loading an index into the cache of index files before it is searched."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import IndexNotFoundError
from lancelake.index.kind import CachedSegment
from lancelake.index.stored_segment import StoredIndices
from lancelake.table.index.request import entries_named


def prewarm(base: Snapshot, name: str, only: Collection[UUID] | None = None) -> None:
    """Load what searches keep of an index, or of some of its segments."""
    known = {entry.uuid for entry in entries_named(base, name)}
    missing = sorted(map(str, set(only or ()) - known))
    if missing:
        problem = f"index {name!r} has no segment {missing[0]}"
        raise IndexNotFoundError(problem, table=base.location.uri, version=base.version)
    for segment in StoredIndices(base).segments(name):
        if only is None or segment.entry.uuid in only:
            opened = segment.open()
            if isinstance(opened, CachedSegment):
                opened.prewarm()
