"""Sizes of the files that a table refers to, requested together and only once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from lancelake.errors import LanceTableError, ObjectNotFoundError, StorageUnavailableError
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt
from lancelake.table.reachable.file_kinds import FOLDERS

# A file's size; None if it does not exist; an error if the store request failed.
FileSize = int | LanceTableError | None

_THREADS = 8
_MOST_HEADS = 64


class FileSizes:
    """Sizes by path; a folder is listed once many of its files are requested."""

    def __init__(self) -> None:
        """Start empty."""
        self._known: dict[FileAt, FileSize] = {}
        self._asked: Counter[tuple[Location, str]] = Counter()
        self._listed: set[tuple[Location, str]] = set()

    def load(self, places: Iterable[FileAt]) -> None:
        """Request the sizes of these files."""
        missing = [place for place in dict.fromkeys(places) if place not in self._known]
        self._asked.update(_folder(place) for place in missing)
        for folder, count in self._asked.items():
            if count > _MOST_HEADS and folder[1] in FOLDERS and folder not in self._listed:
                self._list(*folder)
        single = [place for place in missing if self._needs_head(place)]
        with ThreadPoolExecutor(_THREADS) as pool:
            self._known.update(zip(single, pool.map(_head, single), strict=True))

    def of(self, place: FileAt) -> FileSize:
        """Return the size of a file."""
        if place not in self._known and _folder(place) not in self._listed:
            self.load([place])
        return self._known.get(place)

    def _needs_head(self, place: FileAt) -> bool:
        return place not in self._known and _folder(place) not in self._listed

    def _list(self, root: Location, folder: str) -> None:
        for info in open_store(root).list(folder):
            self._known[FileAt(root=root, path=info.path)] = info.size_bytes
        self._listed.add((root, folder))


def _folder(place: FileAt) -> tuple[Location, str]:
    return place.root, place.path.partition("/")[0]


def _head(place: FileAt) -> FileSize:
    try:
        return open_store(place.root).head(place.path).size_bytes
    except ObjectNotFoundError:
        return None
    except StorageUnavailableError:
        raise
    except LanceTableError as error:
        return error
