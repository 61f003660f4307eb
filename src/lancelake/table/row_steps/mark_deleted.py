"""Mark rows as deleted: write deletion files, and drop emptied fragments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from pyroaring import BitMap

from lancelake.clock import Ids
from lancelake.commit.snapshot import Snapshot
from lancelake.data.commit_ports import sync_deletion_names, write_deletions
from lancelake.data.deletion_files import load_deletions
from lancelake.errors import InvalidRequestError
from lancelake.format.deletion import choose_encoding
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId
from lancelake.scan.count import physical_rows
from lancelake.storage import disk_sync
from lancelake.txn.rules import AffectedRows, RowOffsets

_FILES_AT_ONCE = 16

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFragments:
    """Updated and removed fragments of an operation that deletes or moves rows."""

    updated: tuple[Fragment, ...]
    removed: tuple[FragmentId, ...]
    affected: AffectedRows
    rows: int


def mark_deleted(base: Snapshot, rows: Mapping[FragmentId, BitMap], ids: Ids) -> ChangedFragments:
    """Write the deletion files for these rows, which must be live in the version."""
    by_id = {fragment.id: fragment for fragment in base.manifest.fragments}
    missing = sorted(set(rows) - set(by_id))
    if missing:
        problem = f"fragment {missing[0]} is not part of version {base.version}"
        raise InvalidRequestError(problem, table=base.location.uri, fragment=missing[0])
    chosen = [by_id[i] for i in sorted(rows)]

    def without(fragment: Fragment) -> Fragment | None:
        return _without(base, fragment, rows[fragment.id], ids)

    if len(chosen) <= 1:
        left = [without(fragment) for fragment in chosen]
    else:
        with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
            left = list(pool.map(without, chosen))
    if any(fragment is not None for fragment in left):
        sync_deletion_names(base.location)
    affected: dict[FragmentId, RowOffsets] = {
        i: bytes(offsets.serialize()) for i, offsets in rows.items()
    }
    return ChangedFragments(
        updated=tuple(fragment for fragment in left if fragment is not None),
        removed=tuple(
            before.id for before, after in zip(chosen, left, strict=True) if after is None
        ),
        affected=FrozenMap(affected),
        rows=sum(len(offsets) for offsets in rows.values()),
    )


def mark_deleted_during(
    base: Snapshot, rows: Mapping[FragmentId, BitMap], ids: Ids, work: Callable[[], Done]
) -> tuple[ChangedFragments, Done]:
    """Mark rows as deleted while other work runs, if both wait for a disk or a network."""
    if base.location.scheme in ("file", "memory") and not disk_sync.waits():
        return mark_deleted(base, rows, ids), work()
    with ThreadPoolExecutor(1, thread_name_prefix="take-out") as pool:
        gone = pool.submit(mark_deleted, base, rows, ids)
        done = work()
        return gone.result(), done


def _without(base: Snapshot, fragment: Fragment, rows: BitMap, ids: Ids) -> Fragment | None:
    """Return a fragment with more deleted rows; None if no row is left."""
    gone = load_deletions(base.files, fragment) | rows
    if len(gone) >= physical_rows(base.files, base.manifest_at, fragment):
        return None
    before = fragment.deletion_file
    encoding = choose_encoding(len(gone), None if before is None else before.file_type)
    file = write_deletions(
        base.location, fragment.id, gone, base.version, encoding, ids, syncs_name=False
    )
    return replace(fragment, deletion_file=file)
