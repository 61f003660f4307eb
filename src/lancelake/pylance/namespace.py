"""Directory namespace: the tables below one root by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from lancelake.errors import AlreadyExistsError, TableNotFoundError, UnsupportedError
from lancelake.expr.literals import quoted
from lancelake.format import layout
from lancelake.pylance.dataset import LanceDataset
from lancelake.storage.location import Location
from lancelake.storage.open import open_store

__all__ = ["DeclareTableResponse", "DescribeTableResponse", "DirectoryNamespace"]

_MANIFEST = "__manifest"
_SUFFIX = ".lance"
_SEPARATOR = "$"
_RESERVED = ".lance-reserved"


class _Asks(Protocol):
    id: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTableResponse:
    """Location of a table and the options to open it."""

    location: str
    storage_options: dict[str, str] | None = None
    managed_versioning: bool | None = None


DeclareTableResponse = DescribeTableResponse


class DirectoryNamespace:
    """Tables in the folders `<name>.lance` below a root, and those in its `__manifest` table.

    Properties named `storage.<key>` are storage options. New tables are declared at the root
    level only; tables in nested namespaces are found if another client declared them.
    """

    def __init__(
        self, session: Any = None, context_provider: Any = None, **properties: str
    ) -> None:
        if context_provider is not None:
            raise UnsupportedError("context_provider is not supported")
        if "root" not in properties:
            raise TypeError("DirectoryNamespace needs the property 'root'")
        prefix = "storage."
        self._options = {k.removeprefix(prefix): v for k, v in properties.items() if prefix in k}
        self._uses_manifest = str(properties.get("manifest_enabled", "true")).lower() != "false"
        self._root = Location.parse(properties["root"], self._options)

    def namespace_id(self) -> str:
        """Return a description that identifies the namespace."""
        return f"DirectoryNamespace {{ root: {self._root.uri!r} }}"

    def __repr__(self) -> str:
        return self.namespace_id()

    def describe_table(self, request: _Asks) -> DescribeTableResponse:
        """Return the location of a table."""
        found = self._place(request.id)
        if found is None:
            raise TableNotFoundError(f"Table not found: table id {_name(request.id)!r}")
        return self._response(found)

    def table_exists(self, request: _Asks) -> None:
        """Raise an error if a table does not exist."""
        self.describe_table(request)

    def list_tables(self, request: Any) -> list[str]:
        """Return the names of the tables at the root."""
        names = {name.removesuffix(_SUFFIX) for name in open_store(self._root).list_dirs("")}
        listed = {name for name in self._listed() if _SEPARATOR not in name}
        folders = {n for n in names if self._has_versions(f"{n}{_SUFFIX}")}
        return sorted(folders | listed)

    def declare_table(self, request: _Asks) -> DeclareTableResponse:
        """Reserve the location of a new table."""
        if len(request.id) != 1:
            raise UnsupportedError("tables can be declared at the root of the namespace only")
        if self._place(request.id) is not None:
            raise AlreadyExistsError(f"Table already exists: {_name(request.id)}")
        folder = f"{_name(request.id)}{_SUFFIX}"
        manifest = self._manifest()
        if manifest is None:
            open_store(self._root).put(f"{folder}/{_RESERVED}", b"")
        else:
            row = {"object_id": _name(request.id), "object_type": "table", "location": folder}
            manifest.insert([row], schema_mode="merge")
        return self._response(folder)

    def _place(self, parts: list[str]) -> str | None:
        listed = self._listed(_name(parts)).get(_name(parts))
        if listed is not None or len(parts) != 1:
            return listed
        folder = f"{parts[0]}{_SUFFIX}"
        store = open_store(self._root)
        is_there = self._has_versions(folder) or store.exists(f"{folder}/{_RESERVED}")
        return folder if is_there else None

    def _has_versions(self, folder: str) -> bool:
        return bool(open_store(self._root).list_names(f"{folder}/{layout.VERSIONS}"))

    def _manifest(self) -> LanceDataset | None:
        if not self._uses_manifest or not self._has_versions(_MANIFEST):
            return None
        return LanceDataset(self._root.child(_MANIFEST).uri, storage_options=self._options or None)

    def _listed(self, name: str | None = None) -> dict[str, str]:
        """Return the locations of tables in the manifest by name: all, or one."""
        manifest = self._manifest()
        if manifest is None:
            return {}
        only = "" if name is None else f" AND object_id = {quoted(name)}"
        rows = manifest.to_table(["object_id", "location"], f"object_type = 'table'{only}")
        return {row["object_id"]: row["location"] for row in rows.to_pylist()}

    def _response(self, folder: str) -> DescribeTableResponse:
        options = self._options or None
        return DescribeTableResponse(location=self._root.child(folder).uri, storage_options=options)


def _name(parts: list[str]) -> str:
    return _SEPARATOR.join(parts)
