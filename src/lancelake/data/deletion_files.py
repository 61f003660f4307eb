"""Loading the deleted rows of a fragment."""

from __future__ import annotations

from pyroaring import BitMap

from lancelake.data.table_files import TableFiles
from lancelake.errors import CorruptTableError, LanceTableError, ObjectNotFoundError
from lancelake.format import deletion
from lancelake.format.fragment import Fragment
from lancelake.storage.open import open_store


def load_deletions(files: TableFiles, fragment: Fragment) -> BitMap:
    """Return the offsets of deleted rows; empty when there is no deletion file."""
    entry = fragment.deletion_file
    if entry is None:
        return BitMap()
    place = files.deletion_file(fragment.id, entry)
    try:
        data = open_store(place.root).get(place.path)
        rows = deletion.decode(data, entry.file_type)
    except ObjectNotFoundError as error:
        problem = f"deletion file {place.path} of fragment {fragment.id} is missing"
        raise CorruptTableError(problem, table=files.root.uri, path=place.path) from error
    except LanceTableError as error:
        raise error.at(files.root.uri) from error.__cause__
    if rows and fragment.physical_rows is not None and rows.max() >= fragment.physical_rows:
        problem = (
            f"deletion file {place.path} names row {rows.max()} "
            f"of a fragment with {fragment.physical_rows} rows"
        )
        raise CorruptTableError(problem, table=files.root.uri, path=place.path)
    return rows
