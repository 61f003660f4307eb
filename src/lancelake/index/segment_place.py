"""Folder of the files of an index segment."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot
from lancelake.format import layout
from lancelake.format.index_meta import IndexMetadata
from lancelake.index import cache
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt


def segment_place(snapshot: Snapshot, entry: IndexMetadata) -> FileAt:
    """Return the folder of a segment.

    Official releases that compact a branch or a shallow clone write a segment again into it, but
    record that the files are still in the source.
    """
    recorded = snapshot.files.index_dir(entry)
    if entry.base_id is None:
        return recorded
    own = FileAt(root=snapshot.location, path=layout.index_dir(entry.uuid))

    def is_own() -> bool:
        return bool(list(open_store(own.root).list_names(own.path)))

    return own if cache.kept(own.uri, "has files", is_own, lambda _: 0) else recorded
