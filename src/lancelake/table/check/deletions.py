"""Check that deletion files exist and agree with the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from pyroaring import BitMap

from lancelake.errors import LanceTableError, ObjectNotFoundError, StorageUnavailableError
from lancelake.format import deletion
from lancelake.format.fragment import DeletionFile, Fragment
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt
from lancelake.table.check.finding import Finding
from lancelake.table.check.subject import Subject

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
        with ThreadPoolExecutor(_THREADS) as pool:
            found = pool.map(lambda place: _load(place, wanted[place]), missing)
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


def _load(place: FileAt, entry: DeletionFile) -> Loaded:
    try:
        return deletion.decode(open_store(place.root).get(place.path), entry.file_type)
    except StorageUnavailableError:
        raise
    except LanceTableError as error:
        return error
