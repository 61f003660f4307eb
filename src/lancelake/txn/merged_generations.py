"""MemWAL progress: the system index entry with the merged generation of each region."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace

from pyroaring import BitMap

from lancelake.errors import InvalidRequestError
from lancelake.format.index_meta import MEM_WAL, IndexMetadata, MergedGeneration
from lancelake.format.memwal import details
from lancelake.format.memwal.details import IndexCatchup
from lancelake.txn.options import TableState
from lancelake.txn.rules import OK, Incompatible, Retryable, Verdict, VersionTarget

Indices = tuple[IndexMetadata, ...]
_NS_PER_MS = 1_000_000


def advanced(
    indices: Indices, marks: tuple[MergedGeneration, ...], target: VersionTarget
) -> Indices:
    """Record that these generations are merged into the table."""
    if not marks:
        return indices
    entry = next((i for i in indices if i.name == MEM_WAL), None)
    if entry is None:
        raise InvalidRequestError("generations were merged, but the table has no MemWAL")
    progress = progress_of(entry)
    for mark in marks:
        reached = progress.get(mark.region_id)
        if reached is not None and reached >= mark.generation:
            msg = f"region {mark.region_id} is at generation {reached}, past {mark.generation}"
            raise InvalidRequestError(msg, region=str(mark.region_id), generation=reached)
    return _put(indices, _renewed(with_progress(entry, marks), target))


def progress_of(entry: IndexMetadata) -> dict[uuid.UUID, int]:
    """Read the last merged generation of each region."""
    return details.of_entry(entry).progress()


def with_progress(entry: IndexMetadata, marks: Iterable[MergedGeneration]) -> IndexMetadata:
    """Return the entry with each region at the later of its two generations."""
    before = details.of_entry(entry)
    latest = before.progress()
    for mark in marks:
        latest[mark.region_id] = max(latest.get(mark.region_id, 0), mark.generation)
    merged = tuple(MergedGeneration(region_id=r, generation=g) for r, g in latest.items())
    return replace(entry, details=details.encode(replace(before, merged=merged)))


def with_catchup(
    state: TableState, changed: Iterable[IndexMetadata], target: VersionTarget
) -> TableState:
    """Record for changed indices that they cover everything merged so far, if they do.

    Releases disagree on what a missing entry means; one that is there is true for all of them.
    """
    entry = state.index_named(MEM_WAL)
    names = {index.name for index in changed if not index.is_system}
    if entry is None or not names:
        return state
    before = details.of_entry(entry)
    remaining = tuple(c for c in before.index_catchup if c.index_name not in names)
    added = tuple(
        IndexCatchup(index_name=name, generations=before.merged)
        for name in sorted(names)
        if before.merged and _covers_all(state, name)
    )
    if (*remaining, *added) == before.index_catchup:
        return state
    caught_up = replace(before, index_catchup=(*remaining, *added))
    renewed = _renewed(replace(entry, details=details.encode(caught_up)), target)
    return replace(state, indices=_put(state.indices, renewed))


def _covers_all(state: TableState, name: str) -> bool:
    covered = BitMap()
    for index in state.indices:
        if index.name == name:
            covered |= index.fragments() or BitMap()
    return BitMap(state.fragment_ids()) <= covered


def kept_by_restore(old: TableState, head: TableState) -> Indices:
    """Return the entries after a restore: progress never goes back.

    Otherwise rows that were merged since, and are undone by the restore, would be merged again. A
    MemWAL for another key ends.
    """
    others = tuple(i for i in old.indices if i.name != MEM_WAL)
    entry = head.index_named(MEM_WAL)
    if entry is None or _key(old) != _key(head):
        return others
    # Indices cover what they covered then.
    before = details.of_entry(entry)
    return (*others, replace(entry, details=details.encode(replace(before, index_catchup=()))))


def kept_by_clone(indices: Indices) -> Indices:
    """Return the entries of a clone: its MemWAL has no regions yet, and so none is merged."""
    return tuple(_without_progress(i) if i.name == MEM_WAL else i for i in indices)


def _without_progress(entry: IndexMetadata) -> IndexMetadata:
    before = details.of_entry(entry)
    return replace(entry, details=details.encode(replace(before, merged=(), index_catchup=())))


def _key(state: TableState) -> tuple[int, ...]:
    return tuple(field.id for field in state.manifest.schema.primary_key())


def judged(mine: Iterable[MergedGeneration], theirs: Iterable[MergedGeneration]) -> Verdict:
    """Check two marks of a region: incompatible when theirs is at least as far, else retryable."""
    reached = {m.region_id: m.generation for m in theirs}
    verdict: Verdict = OK
    for mark in mine:
        other = reached.get(mark.region_id)
        if other is None:
            continue
        if other >= mark.generation:
            return Incompatible(f"region {mark.region_id} was merged up to generation {other}")
        verdict = Retryable(f"region {mark.region_id} was merged up to generation {other}")
    return verdict


def _renewed(entry: IndexMetadata, target: VersionTarget) -> IndexMetadata:
    """Give the entry a new uuid, as each of its states has its own."""
    return replace(
        entry,
        uuid=uuid.uuid5(uuid.NAMESPACE_URL, f"{target.transaction_uuid}/{MEM_WAL}"),
        dataset_version=target.version,
        created_at_ms=target.options.timestamp_ns // _NS_PER_MS,
    )


def _put(indices: Indices, entry: IndexMetadata) -> Indices:
    return (*(i for i in indices if i.name != MEM_WAL), entry)
