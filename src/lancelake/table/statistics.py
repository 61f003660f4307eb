"""Files of all versions of a table, and sizes of one version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from lancelake.commit.snapshot import Snapshot, list_versions
from lancelake.data.fragment_reader import column_sizes, physical_rows
from lancelake.errors import VersionNotFoundError
from lancelake.format import layout
from lancelake.format.ids import FieldId
from lancelake.index.cache import segment_place
from lancelake.scan.live_rows import live_rows
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectInfo
from lancelake.storage.table_files import FileAt

Progress = Callable[[int, int | None], object]


class TrackedFile(NamedTuple):
    """A file that a version refers to."""

    version: int
    root: Location
    path: str
    kind: str


def stored_files(location: Location) -> Iterator[ObjectInfo]:
    """Yield every file below the root of a table."""
    return location.store.list("")


def tracked_files(
    location: Location, *, min_version: int | None = None, progress: Progress | None = None
) -> Iterator[TrackedFile]:
    """Yield the files of each version, newest first; a file of several versions is repeated."""
    names = [n for n in list_versions(location) if min_version is None or n.version >= min_version]
    for done, name in enumerate(reversed(names), start=1):
        with suppress(VersionNotFoundError):  # cleaned up since the versions were listed
            yield from _files(Snapshot.load(location, name))
        if progress is not None:
            progress(done, len(names))


def _files(snapshot: Snapshot) -> Iterator[TrackedFile]:
    def tracked(place: FileAt, kind: str) -> TrackedFile:
        return TrackedFile(snapshot.version, place.root, place.path, kind)

    manifest, files = snapshot.manifest, snapshot.files
    yield tracked(snapshot.manifest_at, "manifest")
    if manifest.transaction_file:
        path = layout.transaction(manifest.transaction_file)
        yield tracked(FileAt(root=snapshot.location, path=path), "transaction file")
    for fragment in manifest.fragments:
        for file in fragment.files:
            yield tracked(files.data_file(file), "data file")
        if fragment.deletion_file is not None:
            place = files.deletion_file(fragment.id, fragment.deletion_file)
            yield tracked(place, "deletion file")
    for index in snapshot.indices:
        folder = segment_place(snapshot, index)
        names = [file.path for file in index.files]
        for name in names or folder.store.list_names(folder.path):
            yield tracked(FileAt(root=folder.root, path=f"{folder.path}/{name}"), "index file")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetCounts:
    """Fragments and deleted rows of a version."""

    num_fragments: int
    num_small_files: int
    num_deleted_rows: int


def dataset_counts(snapshot: Snapshot, small_rows: int) -> DatasetCounts:
    """Count fragments, those with fewer than `small_rows` rows, and deleted rows."""
    places = snapshot.files, snapshot.manifest_at
    fragments = snapshot.manifest.fragments
    physical = [physical_rows(*places, f) for f in fragments]
    live = [live_rows(*places, f) for f in fragments]
    return DatasetCounts(
        num_fragments=len(fragments),
        num_small_files=sum(1 for rows in physical if rows < small_rows),
        num_deleted_rows=sum(physical) - sum(live),
    )


def column_bytes(snapshot: Snapshot) -> dict[FieldId, int]:
    """Return the bytes on disk of each field, from the data files."""
    sizes = {field.id: 0 for field in snapshot.manifest.schema.walk()}
    for fragment in snapshot.manifest.fragments:
        for file in fragment.files:
            columns = column_sizes(snapshot.files, file)
            for field_id, index in zip(file.fields, file.column_indices, strict=False):
                if field_id in sizes and index in columns:
                    sizes[field_id] += columns[index]
    return sizes
