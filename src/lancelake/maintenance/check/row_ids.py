"""Check of deletion files and row ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from pyroaring import BitMap, BitMap64

from lancelake.errors import LanceTableError, ObjectNotFoundError, StorageUnavailableError
from lancelake.format import deletion, rowids
from lancelake.format.fragment import DeletionFile, ExternalFile, Fragment, Sequenced
from lancelake.format.rowids import Range, Segment
from lancelake.maintenance.check.finding import Finding, Subject
from lancelake.storage.table_files import FileAt
from lancelake.threads import Pool

_THREADS = 8
_LOST = "Without the file, deleted rows cannot be identified; restore it from a backup."

Loaded = BitMap | LanceTableError


class Deletions:
    """Deleted rows by file; those of the previous version are kept, since most files are shared."""

    def __init__(self, known: Mapping[FileAt, Loaded] | None = None) -> None:
        """Start empty, or with the contents of planned files that are not yet written."""
        self._loaded: dict[FileAt, Loaded] = dict(known or {})

    def load(self, subject: Subject) -> None:
        """Read the deletion files of a version, and discard all others."""
        wanted = {
            place: entry for _, entry, place in _entries(subject) if isinstance(place, FileAt)
        }
        missing = [place for place in wanted if place not in self._loaded]
        with Pool(_THREADS) as pool:
            found = pool.map(lambda place: _load_deletions(place, wanted[place]), missing)
            self._loaded.update(zip(missing, found, strict=True))
        self._loaded = {place: self._loaded[place] for place in wanted}

    def of(self, subject: Subject, fragment: Fragment) -> BitMap | None:
        """Return the deleted rows of a fragment; None if its deletion file is unusable."""
        if fragment.deletion_file is None:
            return BitMap()
        place = _place(subject, fragment, fragment.deletion_file)
        found = self._loaded.get(place) if isinstance(place, FileAt) else None
        return None if isinstance(found, LanceTableError) else found

    def at(self, place: FileAt) -> Loaded:
        """Return the content of a deletion file."""
        return self._loaded[place]


def check_deletions(subject: Subject, deletions: Deletions) -> Iterator[Finding]:
    """Load the deletion files and compare each with its entry and its fragment."""
    deletions.load(subject)
    for fragment, entry, place in _entries(subject):
        if not isinstance(place, FileAt):
            code = "file-escapes" if subject.has_base(entry.base_id) else "base-undeclared"
            message = (
                f"the deletion file of fragment {fragment.id} cannot be located: {place.problem}"
            )
            yield subject.error(code, message)
            continue
        rows = deletions.at(place)
        if isinstance(rows, ObjectNotFoundError):
            message = f"the deletion file of fragment {fragment.id} does not exist"
            yield subject.error("deletion-file-missing", message, path=place.path, hint=_LOST)
        elif isinstance(rows, LanceTableError):
            yield subject.error("deletion-file-damaged", rows.problem, path=place.path, hint=_LOST)
        else:
            yield from _rows(subject, fragment, rows, place.path)


def _rows(subject: Subject, fragment: Fragment, rows: BitMap, path: str) -> Iterator[Finding]:
    recorded = fragment.num_deleted_rows
    if recorded not in (None, len(rows)):
        yield subject.error(
            "deletion-count",
            f"the file deletes {len(rows)} rows of fragment {fragment.id}, the manifest says "
            f"{recorded}; counts without a filter are wrong",
            path=path,
        )
    physical = fragment.physical_rows
    if physical is None:
        return
    if rows and rows.max() >= physical:
        yield subject.error(
            "deletion-range",
            f"the file deletes row {rows.max()} of fragment {fragment.id}, "
            f"which has {physical} rows",
            path=path,
        )
    elif len(rows) == physical:
        yield subject.warning(
            "fragment-empty",
            f"every row of fragment {fragment.id} is deleted",
            path=path,
            hint="Compaction, and the next commit of some releases, drops the fragment.",
        )


def _entries(
    subject: Subject,
) -> Iterator[tuple[Fragment, DeletionFile, FileAt | LanceTableError]]:
    for fragment in subject.fragments:
        if fragment.deletion_file is not None:
            place = _place(subject, fragment, fragment.deletion_file)
            yield fragment, fragment.deletion_file, place


def _place(subject: Subject, fragment: Fragment, entry: DeletionFile) -> FileAt | LanceTableError:
    try:
        return subject.snapshot.files.deletion_file(fragment.id, entry)
    except LanceTableError as error:
        return error


def _load_deletions(place: FileAt, entry: DeletionFile) -> Loaded:
    try:
        return deletion.decode(place.store.get(place.path), entry.file_type)
    except StorageUnavailableError:
        raise
    except LanceTableError as error:
        return error


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
        segments = rowids.decode_row_ids(_load_sequence(subject, fragment.row_ids))
    except LanceTableError as error:
        message = f"row ids of fragment {fragment.id} cannot be read: {error.problem}"
        yield subject.error("row-ids-damaged", message)
        return
    count = sum(rowids.length(part) for part in segments)
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
        end = first + rowids.length(part)
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
    values = np.delete(rowids.segment_values(part), gone.astype(np.int64))
    return BitMap64(values.tolist())


def _versions(subject: Subject, fragment: Fragment, name: str) -> Iterator[Finding]:
    source: Sequenced = getattr(fragment, name)
    if source is None:
        return
    what = f"{name.replace('_', ' ')} of fragment {fragment.id}"
    try:
        runs = rowids.decode_versions(_load_sequence(subject, source))
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


def _load_sequence(subject: Subject, source: Sequenced) -> bytes:
    if isinstance(source, ExternalFile):
        place: FileAt = subject.snapshot.files.external(source)
        store = place.store
        return store.get_range(place.path, start=source.offset, length=source.size)
    return source or b""
