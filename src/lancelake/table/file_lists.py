"""Lists of a table's files: those that versions refer to, and those that are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import list_versions
from lancelake.errors import VersionNotFoundError
from lancelake.format import layout
from lancelake.index.segment_place import segment_place
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
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
    return open_store(location).list("")


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
        for name in names or open_store(folder.root).list_names(folder.path):
            yield tracked(FileAt(root=folder.root, path=f"{folder.path}/{name}"), "index file")
