"""MemWAL progress: the system index entry with the merged generation of each region."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace

from lancelake.errors import InvalidRequestError
from lancelake.format.index_meta import MEM_WAL, IndexMetadata
from lancelake.format.memwal import details
from lancelake.format.merged_generation import MergedGeneration
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
