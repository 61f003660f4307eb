"""Files of a table in its base paths, and which places a table may name.

Tables are untrusted data: a location in them is opened with the caller's options only.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

from lancelake.errors import CorruptTableError, InvalidRequestError, PlaceNotAllowedError
from lancelake.format import layout
from lancelake.format.fragment import BasePath, DataFile, DeletionFile, ExternalFile
from lancelake.format.ids import BaseId
from lancelake.format.index_meta import IndexMetadata
from lancelake.storage.location import Location
from lancelake.storage.store import (
    ObjectStore,
    confined_path,
    ensure_below,
    ensure_plain,
    is_below,
    real_roots,
)

_HERE = frozenset({"file", "memory"})
_STORES = {"s3+ddb": "s3", "abfss": "az"}
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def place_named_by(table: Location, text: str) -> Location:
    """Return a location that the content of a table refers to, or raise if it is not allowed.

    Without `confine_to`, a table on local disk may refer to any location, and one in an object
    store to locations in the same kind of store. With it, a location must be below its roots.
    """
    if text.startswith("~") or (_URI.match(text) and any(mark in text for mark in "?#")):
        problem = f"the table refers to {text!r}, which has a query, a fragment or a ~"
        raise PlaceNotAllowedError(problem, table=table.uri, action="Do not trust this table.")
    try:
        place = Location.parse(text, table.storage_options)
    except InvalidRequestError as error:
        raise error.at(table.uri) from None
    # Versions are never looked up there, so this is the plain store.
    place = replace(place, uri=re.sub(r"\As3\+ddb:", "s3:", place.uri))
    is_allowed = (
        _is_same_store(table, place)
        if table.confine_to is None
        else _is_within(table.confine_to, place.uri)
    )
    if not is_allowed:
        outside = "another kind of store" if table.confine_to is None else "outside of confine_to"
        problem = f"the table refers to {place.uri!r}, which is {outside}"
        raise PlaceNotAllowedError(problem, table=table.uri, place=place.uri)
    return replace(place, confine_to=table.confine_to, session=table.session)


def local_path(location: Location, path: str) -> str:
    """Return the path of a file on local disk, for callers that open it themselves."""
    full = f"{location.uri.rstrip('/')}/{path}"
    ensure_plain(path)
    if (roots := real_roots(location.confine_to)) is not None:
        ensure_below(full, roots)
    return full


def _is_same_store(table: Location, place: Location) -> bool:
    if table.scheme in _HERE:
        return True
    if _store(table) != _store(place):
        return False
    # The part after the @ is the account, which is part of the host.
    host = place.authority.partition("@")[2]
    return not host or host == table.authority.partition("@")[2]


def _store(location: Location) -> str:
    return _STORES.get(location.scheme, location.scheme)


def _is_within(roots: tuple[str, ...], uri: str) -> bool:
    return is_below(_normal(uri), tuple(map(_normal, roots)))


def _normal(uri: str) -> str:
    if "://" not in uri:
        return os.path.realpath(uri)
    return re.sub(r"\As3\+ddb:", "s3:", uri)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAt:
    """Location of a file: the root of its store, and the path below it."""

    root: Location
    path: str

    @property
    def uri(self) -> str:
        """URI of the file."""
        return self.root.child(self.path).uri

    @property
    def store(self) -> ObjectStore:
        """The store that has the file."""
        return self.root.store


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
