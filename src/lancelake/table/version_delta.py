"""Rows and fragments that a version added and removed."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.commit.snapshot import Snapshot
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.operations import DataReplacement, Operation, Rewrite


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionDelta:
    """Rows and fragments added and removed; rows are None if the manifests do not record them."""

    rows_added: int | None
    rows_removed: int | None
    fragments_added: int
    fragments_removed: int


def change(before: Snapshot | None, after: Snapshot, operation: Operation | None) -> VersionDelta:
    """Compare a version with its predecessor; None if it is the first version.

    Rows that an update moves count as removed and added, rows that a compaction moves do not.
    """
    earlier = FragmentList.of(() if before is None else before.manifest.fragments)
    later = FragmentList.of(after.manifest.fragments)
    # Entries that are identical in both versions are not decoded.
    old = {f.id: f for f in earlier.changed_since(later)}
    new = {f.id: f for f in later.changed_since(earlier)}
    same = {i for i in new if i in old and _is_same(old[i], new[i], operation)}
    gone = [f for i, f in old.items() if i not in same]
    come = [f for i, f in new.items() if i not in same]
    deleted = [_difference(old[i], new[i]) for i in same]
    is_rewrite = isinstance(operation, Rewrite)
    return VersionDelta(
        rows_added=0 if is_rewrite else _total([f.live_rows for f in come], deleted, -1),
        rows_removed=0 if is_rewrite else _total([f.live_rows for f in gone], deleted, 1),
        fragments_added=len(come),
        fragments_removed=len(gone),
    )


def live_rows(snapshot: Snapshot) -> int | None:
    """Count the live rows of a version; None if the manifest does not record them."""
    return FragmentList.of(snapshot.manifest.fragments).live_rows()


def _is_same(old: Fragment, new: Fragment, operation: Operation | None) -> bool:
    """Whether two fragments are the same; an overwrite may reuse ids, so their files must agree."""
    if isinstance(operation, DataReplacement):
        return True
    return not {f.path for f in old.files}.isdisjoint(f.path for f in new.files)


def _difference(old: Fragment, new: Fragment) -> int | None:
    """Count the rows deleted from a fragment; negative if rows came back."""
    before, after = old.num_deleted_rows, new.num_deleted_rows
    return None if before is None or after is None else after - before


def _total(counts: list[int | None], deleted: list[int | None], sign: int) -> int | None:
    parts = counts + [None if n is None else max(0, n * sign) for n in deleted]
    known = [n for n in parts if n is not None]
    return sum(known) if len(known) == len(parts) else None
