"""Numbers about an index: how much of a table it covers, and what its segments hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.format import index_details
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.index.recorded_moves import with_inline_moves
from lancelake.index.stored_segment import StoredIndices, indexed_type
from lancelake.scan.count import live_rows
from lancelake.table.index.request import entries_named
from lancelake.txn import fragment_reuse


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCoverage:
    """How much of a version an index covers."""

    name: str
    kind: str
    column: str
    segments: int
    fragments: int
    rows: int
    rows_per_segment: tuple[int, ...]
    unindexed_fragments: int
    unindexed_rows: int
    size_bytes: int | None
    created_at_ms: int | None

    @property
    def share(self) -> float:
        """The share of the rows that are covered; 1 in a table without rows."""
        total = self.rows + self.unindexed_rows
        return self.rows / total if total else 1.0


def current_coverage(base: Snapshot) -> dict[UUID, set[int]]:
    """Return the fragments that segments cover where recorded moves changed them."""
    if not any(entry.name == FRAGMENT_REUSE for entry in base.indices):
        return {}
    followed = fragment_reuse.followed(with_inline_moves(base))
    return {entry.uuid: set(entry.fragments() or ()) for entry in followed}


def coverage_of(base: Snapshot) -> tuple[IndexCoverage, ...]:
    """Return the coverage of all indices of a version, by name."""
    names = sorted({entry.name for entry in base.indices if not entry.is_system})
    counts = _Counts(base) if names else None
    return tuple(counts.of(entries_named(base, name)) for name in names) if counts else ()


def coverage_named(base: Snapshot, name: str) -> IndexCoverage:
    """Return the coverage of an index; raise IndexNotFoundError if there is none."""
    return _Counts(base).of(entries_named(base, name))


def segment_statistics(base: Snapshot, name: str) -> list[Mapping[str, Any]] | None:
    """Return the numbers that official releases show for each segment.

    None for a kind that is not known. The files of the segments are opened.
    """
    stored = StoredIndices(base)
    found = []
    for entry in entries_named(base, name):
        field = base.manifest.schema.by_id().get(entry.fields[0]) if entry.fields else None
        kind = None if field is None else stored.kind(entry, indexed_type(field))
        if kind is None or field is None:
            return None
        found.append(kind.open(stored.facts(entry, indexed_type(field))).statistics())
    return found


class _Counts:
    """The live rows of each fragment, and what segments cover of them."""

    def __init__(self, base: Snapshot) -> None:
        places = base.files, base.manifest_at
        self._rows: dict[int, int] = {f.id: live_rows(*places, f) for f in base.manifest.fragments}
        self._schema = base.manifest.schema
        self._stored = StoredIndices(base)
        self._moved = current_coverage(base)

    def _kind(self, entry: IndexMetadata) -> str:
        """Return the shown kind; that of an entry without details is read from its files."""
        field = self._schema.by_id().get(entry.fields[0]) if entry.fields else None
        if entry.details is not None or field is None:
            return index_details.describe(entry.details)[0] or index_details.UNKNOWN
        found = self._stored.kind(entry, indexed_type(field))
        return index_details.UNKNOWN if found is None else index_details.shown(found.details_type)

    def of(self, entries: Sequence[IndexMetadata]) -> IndexCoverage:
        per_segment = [self._covered(entry) for entry in entries]
        covered = BitMap.union(BitMap(), *per_segment)
        rows = self._count(covered)
        first = entries[0]
        kind = self._kind(first)
        sizes = [sum(f.size_bytes for f in e.files) for e in entries if e.files]
        times = [e.created_at_ms for e in entries if e.created_at_ms is not None]
        return IndexCoverage(
            name=first.name,
            kind=kind,
            column=", ".join(self._schema.path_of(i) or str(i) for i in first.fields),
            segments=len(entries),
            fragments=len(covered),
            rows=rows,
            rows_per_segment=tuple(self._count(each) for each in per_segment),
            unindexed_fragments=len(self._rows) - len(covered),
            unindexed_rows=sum(self._rows.values()) - rows,
            size_bytes=sum(sizes) if len(sizes) == len(entries) else None,
            created_at_ms=max(times, default=None),
        )

    def _covered(self, entry: IndexMetadata) -> BitMap:
        named = self._moved.get(entry.uuid, entry.fragments() or ())
        return BitMap(i for i in named if i in self._rows)

    def _count(self, fragments: BitMap) -> int:
        return sum(self._rows[i] for i in fragments)
