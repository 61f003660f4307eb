"""Locations of a table's files, below its root and its base paths."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lancelake.errors import CorruptTableError
from lancelake.format import layout
from lancelake.format.bases import BasePath
from lancelake.format.fragment import DataFile, DeletionFile, ExternalFile
from lancelake.format.ids import BaseId
from lancelake.format.index_meta import IndexMetadata
from lancelake.storage.confined import confined_path
from lancelake.storage.location import Location
from lancelake.storage.trust import place_named_by


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAt:
    """Location of a file: the root of its store, and the path below it."""

    root: Location
    path: str

    @property
    def uri(self) -> str:
        """URI of the file."""
        return self.root.child(self.path).uri


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFiles:
    """Resolves manifest entries to locations below the root or declared base paths."""

    root: Location
    bases: tuple[BasePath, ...] = ()

    def data_file(self, file: DataFile) -> FileAt:
        """Location of a data file."""
        root, folder = self._base(file.base_id, layout.DATA)
        return FileAt(root=root, path=_joined(folder, confined_path(file.path)))

    def deletion_file(self, fragment_id: int, file: DeletionFile) -> FileAt:
        """Location of a deletion file."""
        path = layout.deletion_file(
            fragment_id=fragment_id,
            read_version=file.read_version,
            unique=file.id,
            suffix=file.file_type.value,
        )
        root, folder = self._base(file.base_id, layout.DELETIONS)
        if folder != layout.DELETIONS:
            problem = f"{path} is stored below base {file.base_id}, which is not a table"
            raise CorruptTableError(problem, table=self.root.uri, path=path)
        return FileAt(root=root, path=path)

    def index_dir(self, index: IndexMetadata) -> FileAt:
        """Folder of an index segment."""
        root, folder = self._base(index.base_id, layout.INDICES)
        return FileAt(root=root, path=_joined(folder, str(index.uuid)))

    def external(self, file: ExternalFile) -> FileAt:
        """Location of an external sequence file."""
        return FileAt(root=self.root, path=confined_path(file.path))

    def below_base(self, base_id: BaseId, path: str) -> FileAt:
        """Location of a file given by its path below a declared base."""
        root, _ = self._base(base_id, "")
        return FileAt(root=root, path=confined_path(path))

    def named_by_blob(self, uri: str) -> FileAt:
        """Location of a blob outside the table, given by its URI."""
        place = place_named_by(self.root, uri)
        if place.scheme == "file":
            folder, _, name = place.uri.rpartition("/")
            return FileAt(root=replace(place, uri=folder or "/"), path=name)
        root = replace(place, uri=f"{place.scheme}://{place.authority}")
        return FileAt(root=root, path=place.key)

    def _base(self, base_id: BaseId | None, folder: str) -> tuple[Location, str]:
        """Return the root to use and the folder below it."""
        if base_id is None:
            return self.root, folder
        base = next((b for b in self.bases if b.id == base_id), None)
        if base is None:
            problem = f"a file refers to base path {base_id}, which is not declared"
            raise CorruptTableError(problem, table=self.root.uri, base_id=base_id)
        location = place_named_by(self.root, base.path)
        return location, folder if base.is_dataset_root else ""


def _joined(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path
