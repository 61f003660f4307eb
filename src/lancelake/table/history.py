"""The versions of a table, each with when it was written and what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lancelake.commit.versions import list_versions
from lancelake.errors import VersionNotFoundError
from lancelake.storage.location import Location
from lancelake.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSummary:
    """What a manifest says about its version in numbers; counts that it lacks are zero."""

    total_fragments: int
    total_data_files: int
    total_files_size: int
    total_deletion_files: int
    total_data_file_rows: int
    total_deletion_file_rows: int

    @property
    def total_rows(self) -> int:
        """Live rows."""
        return self.total_data_file_rows - self.total_deletion_file_rows


def history(location: Location, *, newest_first: bool = False) -> Iterator[Snapshot]:
    """Yield every version that is still there, one at a time."""
    names = list_versions(location)
    for name in reversed(names) if newest_first else names:
        try:
            yield Snapshot.load(location, name)
        except VersionNotFoundError:
            # Cleaned up since the versions were listed.
            continue


def summarize(snapshot: Snapshot) -> VersionSummary:
    """Count what a version holds."""
    fragments = snapshot.manifest.fragments
    deletions = [f.deletion_file for f in fragments if f.deletion_file is not None]
    return VersionSummary(
        total_fragments=len(fragments),
        total_data_files=sum(len(f.files) for f in fragments),
        total_files_size=sum(file.file_size_bytes or 0 for f in fragments for file in f.files),
        total_deletion_files=len(deletions),
        total_data_file_rows=sum(f.physical_rows or 0 for f in fragments),
        total_deletion_file_rows=sum(d.num_deleted_rows or 0 for d in deletions),
    )
