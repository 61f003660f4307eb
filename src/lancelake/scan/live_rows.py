"""Counting of live rows of fragments and versions."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CorruptTableError
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.storage.table_files import FileAt, TableFiles


def live_rows(files: TableFiles, manifest_at: FileAt, fragment: Fragment) -> int:
    """Count the rows of a fragment that are not deleted, from the manifest if it states them."""
    rows = fragment.live_rows
    if rows is not None:
        if rows < 0:
            raise CorruptTableError(f"fragment {fragment.id} has more deleted rows than rows")
        return rows
    # Nearly all manifests have the numbers, and the codec is slow to load.
    from lancelake.data import fragment_reader  # noqa: PLC0415

    deleted = fragment.num_deleted_rows
    if deleted is None:
        deleted = len(fragment_reader.load_deletions(files, fragment))
    return fragment_reader.physical_rows(files, manifest_at, fragment) - deleted


def count_rows(snapshot: Snapshot) -> int:
    """Count the live rows of a version without reading any column."""
    fragments = snapshot.manifest.fragments
    rows = fragments.live_rows() if isinstance(fragments, FragmentList) else None
    if rows is not None:
        return rows
    places = snapshot.files, snapshot.manifest_at
    return sum(live_rows(*places, fragment) for fragment in snapshot.manifest.fragments)
