"""Check that row ids are complete, unique and below the next row id."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pyroaring import BitMap, BitMap64

from lancelake.errors import LanceTableError
from lancelake.format.fragment import ExternalFile, Fragment, Sequenced
from lancelake.format.rowids import codec, segment
from lancelake.format.rowids.segment import Range, Segment
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt
from lancelake.table.check.deletions import Deletions
from lancelake.table.check.finding import Finding
from lancelake.table.check.subject import Subject

_REWRITE = "Row ids are no longer unique; write the rows into a new table."


def check_row_ids(subject: Subject, deletions: Deletions) -> Iterator[Finding]:
    """Check the row ids and version sequences of all rows."""
    taken = BitMap64()
    for fragment in subject.fragments:
        if fragment.row_ids is not None:
            yield from _ids(subject, fragment, deletions.of(subject, fragment), taken)
        for name in ("created_at_versions", "last_updated_at_versions"):
            yield from _versions(subject, fragment, name)


def _ids(
    subject: Subject, fragment: Fragment, deleted: BitMap | None, taken: BitMap64
) -> Iterator[Finding]:
    try:
        segments = codec.decode_row_ids(_load(subject, fragment.row_ids))
    except LanceTableError as error:
        message = f"row ids of fragment {fragment.id} cannot be read: {error.problem}"
        yield subject.error("row-ids-damaged", message)
        return
    count = sum(segment.length(part) for part in segments)
    if fragment.physical_rows not in (None, count):
        yield subject.error(
            "row-ids-length",
            f"fragment {fragment.id} has {count} row ids but {fragment.physical_rows} rows",
        )
        return
    if deleted is None:
        return
    live, repeats = _live_ids(segments, deleted)
    next_id = subject.snapshot.manifest.next_row_id
    if live and live.max() >= next_id:
        yield subject.error(
            "row-ids-range",
            f"fragment {fragment.id} has the row id {live.max()}, but the next row id is "
            f"{next_id}; new rows will be assigned existing ids",
        )
    shared = live.intersection_cardinality(taken) + repeats
    if shared:
        yield subject.error(
            "row-ids-twice",
            f"{shared} live rows of fragment {fragment.id} have the same row ids as other "
            "live rows",
            hint=_REWRITE,
        )
    taken |= live


def _live_ids(segments: tuple[Segment, ...], deleted: BitMap) -> tuple[BitMap64, int]:
    """Return the ids of live rows, and how many of them are duplicates."""
    live = BitMap64()
    total = first = 0
    for part in segments:
        end = first + segment.length(part)
        gone = np.array((deleted & BitMap(range(first, end))).to_array(), dtype=np.uint64)
        ids = _segment_ids(part, gone - np.uint64(first))
        total += end - first - len(gone)
        live |= ids
        first = end
    return live, total - len(live)


def _segment_ids(part: Segment, gone: np.ndarray) -> BitMap64:
    """Return the ids of a segment except those at these positions."""
    if isinstance(part, Range):
        # Ranges are never expanded: one may span billions of rows.
        ids = BitMap64()
        ids.add_range(part.start, part.end)
        return ids - BitMap64((gone + np.uint64(part.start)).tolist())
    values = np.delete(segment.values(part), gone.astype(np.int64))
    return BitMap64(values.tolist())


def _versions(subject: Subject, fragment: Fragment, name: str) -> Iterator[Finding]:
    source: Sequenced = getattr(fragment, name)
    if source is None:
        return
    what = f"{name.replace('_', ' ')} of fragment {fragment.id}"
    try:
        runs = codec.decode_versions(_load(subject, source))
    except LanceTableError as error:
        yield subject.error("row-versions-damaged", f"{what} cannot be read: {error.problem}")
        return
    count = sum(rows for rows, _ in runs)
    physical = fragment.physical_rows
    if physical is not None and count > physical:
        message = f"{what} cover {count} rows, but there are {physical}"
        yield subject.error("row-versions-length", message)
    elif physical is not None and count < physical:
        message = f"{what} cover {count} rows, but there are {physical}; readers guess the rest"
        yield subject.warning("row-versions-length", message)
    newest = max((version for _, version in runs), default=0)
    if newest > subject.snapshot.version:
        message = f"{what} refer to version {newest}, which is newer than this version"
        yield subject.error("row-versions-range", message)


def _load(subject: Subject, source: Sequenced) -> bytes:
    if isinstance(source, ExternalFile):
        place: FileAt = subject.snapshot.files.external(source)
        store = open_store(place.root)
        return store.get_range(place.path, start=source.offset, length=source.size)
    return source or b""
