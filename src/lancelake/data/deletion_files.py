"""Loading of deletion files."""

from __future__ import annotations

from pyroaring import BitMap, FrozenBitMap

from lancelake.data.recently_used import RecentlyUsed
from lancelake.errors import CorruptTableError, LanceTableError, ObjectNotFoundError
from lancelake.format import deletion
from lancelake.format.fragment import Fragment
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt, TableFiles

# A deletion file never changes: its name includes a random number.
_SMALL_ROWS = 1 << 16
# A larger row count of a manifest is checked against the data file.
_LIKELY_ROWS = 1 << 22
_KEPT = 1024
_kept: RecentlyUsed[FileAt, FrozenBitMap] = RecentlyUsed(_KEPT)


def known_deletions(files: TableFiles, fragment: Fragment) -> BitMap:
    """Like `load_deletions`, with a cache for small files."""
    entry = fragment.deletion_file
    if entry is None or entry.num_deleted_rows is None or entry.num_deleted_rows > _SMALL_ROWS:
        return load_deletions(files, fragment)
    place = files.deletion_file(fragment.id, entry)
    found = _kept.get(place, lambda: FrozenBitMap(load_deletions(files, fragment)))
    return BitMap(found)


def load_deletions(files: TableFiles, fragment: Fragment) -> BitMap:
    """Return the offsets of deleted rows; empty when there is no deletion file."""
    entry = fragment.deletion_file
    if entry is None:
        return BitMap()
    place = files.deletion_file(fragment.id, entry)
    try:
        data = open_store(place.root).get(place.path)
        rows = deletion.decode(data, entry.file_type, rows=fragment.physical_rows)
        if len(rows) > _SMALL_ROWS or not 0 <= (fragment.physical_rows or -1) <= _LIKELY_ROWS:
            _ensure_within_file(files, fragment, rows)
    except ObjectNotFoundError as error:
        problem = f"deletion file {place.path} of fragment {fragment.id} is missing"
        raise CorruptTableError(problem, table=files.root.uri, path=place.path) from error
    except LanceTableError as error:
        raise error.at(files.root.uri) from error.__cause__
    return rows


def _ensure_within_file(files: TableFiles, fragment: Fragment, rows: BitMap) -> None:
    """Raise for deletions of rows that no data file has, before memory is allocated for them."""
    if not fragment.files or not rows:
        return
    from lancelake.data.open_columns import stored_rows  # noqa: PLC0415  # loads the codec

    stored = stored_rows(files, fragment.files[0])
    if (fragment.physical_rows or 0) > stored:
        problem = f"fragment {fragment.id} has {stored} rows, not {fragment.physical_rows}"
        raise CorruptTableError(problem, fragment=fragment.id)
    if rows.max() >= stored:
        problem = f"deleted row {rows.max()} is not in fragment {fragment.id} of {stored} rows"
        raise CorruptTableError(problem, fragment=fragment.id)
