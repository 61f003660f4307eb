"""Fragments of a version as columns of numbers, for a map of many of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.errors import NotFoundError
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.table.describe.documents import Json
from lancelake.table.describe.files import fragment_document
from lancelake.table.describe.summary import index_coverage


@names_table
def fragment_map(snapshot: Snapshot, offset: int, limit: int) -> Json:
    """Return fragments in the order of the manifest: rows, deleted rows, bytes, files.

    The coverage of an index is a list of runs, each of the first position and the one after the
    last; None if the index does not record it.
    """
    every = snapshot.manifest.fragments
    shown = every[offset : offset + limit]
    ids = [fragment.id for fragment in shown]
    return {
        "version": snapshot.version,
        "total": len(every),
        "offset": offset,
        "ids": ids,
        "rows": [fragment.physical_rows for fragment in shown],
        "deleted": [fragment.num_deleted_rows for fragment in shown],
        "bytes": [_bytes(fragment) for fragment in shown],
        "files": [len(fragment.files) for fragment in shown],
        "indices": [
            {
                "name": index.name,
                "kind": index.kind,
                "columns": list(index.columns),
                "runs": None if covered is None else [list(run) for run in _runs(ids, covered)],
            }
            for index, covered in index_coverage(snapshot)
            if not index.is_system
        ],
    }


@names_table
def one_fragment(snapshot: Snapshot, number: int) -> Json:
    """Return a fragment with its files, and the indices that cover it."""
    found = FragmentList.of(snapshot.manifest.fragments).by_id().get(FragmentId(number))
    if found is None:
        raise NotFoundError(f"there is no fragment {number}")
    indices = [
        {"name": index.name, "is_covered": None if covered is None else number in covered}
        for index, covered in index_coverage(snapshot)
        if not index.is_system
    ]
    return {**fragment_document(snapshot, found), "indices": indices}


def _bytes(fragment: Fragment) -> int | None:
    sizes = [file.file_size_bytes for file in fragment.files]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _runs(ids: Sequence[int], covered: BitMap) -> Iterator[tuple[int, int]]:
    start: int | None = None
    for position, number in enumerate(ids):
        if number in covered and start is None:
            start = position
        elif number not in covered and start is not None:
            yield start, position
            start = None
    if start is not None:
        yield start, len(ids)
