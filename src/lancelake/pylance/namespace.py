"""Directory namespace: tables and namespaces below one root by name."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from lance_namespace import (
    CreateNamespaceResponse,
    CreateTableResponse,
    DeclareTableResponse,
    DeregisterTableResponse,
    DescribeNamespaceResponse,
    DescribeTableResponse,
    DropNamespaceResponse,
    DropTableResponse,
    LanceNamespace,
    ListNamespacesResponse,
    ListTablesResponse,
    NamespaceExistsResponse,
    RegisterTableResponse,
    TableExistsResponse,
)

from lancelake.core.table_place import TablePlace
from lancelake.core.values.metadata import default_session
from lancelake.errors import UnsupportedError
from lancelake.pylance import _namespace as directory
from lancelake.pylance._dataset.state import Session

__all__ = ["DeclareTableResponse", "DescribeTableResponse", "DirectoryNamespace"]

_RESERVED = ".lance-reserved"
_MODES = {"create": "create", "existok": "exist_ok", "overwrite": "overwrite"}


class DirectoryNamespace(LanceNamespace):
    """Tables in the folders `<name>.lance` below a root, and those in its `__manifest` table.

    The manifest holds nested namespaces and their tables; it is made with the first of them.
    Properties named `storage.<key>` are storage options. Operations on the content of tables are
    those of `LanceDataset`.
    """

    def __init__(
        self, session: Any = None, context_provider: Any = None, **properties: str
    ) -> None:
        if context_provider is not None:
            raise UnsupportedError("context_provider is not supported")
        if "root" not in properties:
            raise TypeError("DirectoryNamespace needs the property 'root'")
        prefix = "storage."
        storage = {k: v for k, v in properties.items() if k.startswith(prefix)}
        options = {k.removeprefix(prefix): v for k, v in storage.items()}
        self._options = options or None
        self._root = directory.Root(
            uri=properties["root"], options=self._options, session=session or Session()
        )
        is_used = str(properties.get("manifest_enabled", "true")).lower() != "false"
        self._manifest = directory.Manifest(root=self._root, is_used=is_used)

    def namespace_id(self) -> str:
        """Return a description that identifies the namespace."""
        return f'DirectoryNamespace {{ root: "{self._root.location.uri}" }}'

    def __repr__(self) -> str:
        return self.namespace_id()

    def create_namespace(self, request: Any) -> CreateNamespaceResponse:
        """Add a namespace below the root or below another one."""
        parts, properties = _parts(request), dict(getattr(request, "properties", None) or {})
        if not parts:
            raise directory.TakenNamespace("Namespace already exists: the root")
        if len(parts) > 1 and not self._has_namespace(parts[:-1]):
            raise directory.MissingNamespace(
                f"Namespace not found: parent namespace '{directory.join_id(parts[:-1])}'"
            )
        metadata = json.dumps(properties) if properties else None
        if not self._manifest.add(directory.join_id(parts), directory.NAMESPACE, metadata=metadata):
            raise directory.TakenNamespace(f"Namespace already exists: {directory.join_id(parts)}")
        return CreateNamespaceResponse(properties=properties or None)

    def describe_namespace(self, request: Any) -> DescribeNamespaceResponse:
        """Return the properties of a namespace."""
        parts = _parts(request)
        if not parts:
            return DescribeNamespaceResponse(properties={})
        entry = self._manifest.rows(directory.NAMESPACE, directory.join_id(parts)).get(
            directory.join_id(parts)
        )
        if entry is None:
            raise directory.MissingNamespace(f"Namespace not found: {directory.join_id(parts)}")
        text = entry.get("metadata")
        return DescribeNamespaceResponse(properties=json.loads(text) if text else {})

    def namespace_exists(self, request: Any) -> NamespaceExistsResponse:
        """Raise an error if a namespace does not exist."""
        self._ensure_namespace(_parts(request))
        return NamespaceExistsResponse()

    def list_namespaces(self, request: Any) -> ListNamespacesResponse:
        """Return the names of the namespaces directly below one."""
        page = _page(
            request,
            directory.names_below(self._manifest.rows(directory.NAMESPACE), _parts(request)),
        )
        return ListNamespacesResponse(namespaces=page.names, page_token=page.token)

    def drop_namespace(self, request: Any) -> DropNamespaceResponse:
        """Remove an empty namespace."""
        parts = _parts(request)
        if not parts:
            raise directory.InvalidInput("Invalid input: Root namespace cannot be dropped")
        self._ensure_namespace(parts)
        count = directory.count_below(self._manifest.rows(), parts)
        if count:
            problem = f"'{directory.join_id(parts)}' (contains {count} child objects)"
            raise directory.NamespaceNotEmpty(f"Namespace not empty: {problem}")
        self._manifest.remove(directory.join_id(parts))
        return DropNamespaceResponse()

    def create_table(self, request: Any, request_data: bytes) -> CreateTableResponse:
        """Write a new table from an Arrow IPC stream, or replace its rows."""
        parts, mode = _table_parts(request), _mode(request)
        if not request_data:
            required = "Request data (Arrow IPC stream) is required for create_table"
            raise directory.InvalidInput(f"Invalid input: {required}")
        place = self._place(parts)
        if place is not None and mode == "exist_ok":
            return CreateTableResponse(
                location=self._root.child(place), storage_options=self._options
            )
        is_written = place is not None and self._root.has_table(place)
        if is_written and mode == "create":
            raise directory.TakenTable(f"Table already exists: {parts[-1]}")
        if place is None:
            place = self._register(parts)
        rows = pa.ipc.open_stream(request_data)
        dataset = self._root.write(rows, place, "overwrite" if is_written else "create")
        return CreateTableResponse(
            location=self._root.child(place), version=dataset.version, storage_options=self._options
        )

    def declare_table(self, request: Any) -> DeclareTableResponse:
        """Reserve the location of a new table."""
        parts = _table_parts(request)
        if self._place(parts) is not None:
            raise directory.TakenTable(f"Table already exists: {parts[-1]}")
        place = self._register(parts)
        return DeclareTableResponse(location=self._root.child(place), storage_options=self._options)

    def describe_table(self, request: Any) -> DescribeTableResponse:
        """Return the location of a table."""
        parts = _table_parts(request)
        uri = self._root.child(self._find(parts))
        return DescribeTableResponse(
            table=parts[-1],
            namespace=parts[:-1],
            location=uri,
            table_uri=uri,
            storage_options=self._options,
        )

    def table_exists(self, request: Any) -> TableExistsResponse:
        """Raise an error if a table does not exist."""
        self._find(_table_parts(request))
        return TableExistsResponse()

    def list_tables(self, request: Any) -> ListTablesResponse:
        """Return the names of the tables directly in a namespace."""
        parts = _parts(request)
        names = directory.names_below(self._manifest.rows(directory.TABLE), parts)
        if not parts:
            folders = self._root.store.list_dirs("")
            names |= {
                folder.removesuffix(directory.SUFFIX)
                for folder in folders
                if folder.endswith(directory.SUFFIX) and self._root.has_table(folder)
            }
        page = _page(request, names)
        return ListTablesResponse(tables=page.names, page_token=page.token)

    def register_table(self, request: Any) -> RegisterTableResponse:
        """Give a name to a table at a path below the root."""
        parts = _table_parts(request)
        directory.ensure_inside(request.location)
        if self._place(parts) is not None or not self._record(parts, request.location):
            raise directory.TakenTable(f"Table already exists: {parts[-1]}")
        return RegisterTableResponse(location=request.location)

    def deregister_table(self, request: Any) -> DeregisterTableResponse:
        """Forget the name of a table; its files stay."""
        parts = _table_parts(request)
        place = self._manifest.location(directory.join_id(parts))
        if place is None:
            raise directory.MissingTable(f"Table not found: {directory.join_id(parts)}")
        self._manifest.remove(directory.join_id(parts))
        return DeregisterTableResponse(id=parts, location=self._root.child(place))

    def drop_table(self, request: Any) -> DropTableResponse:
        """Delete the files of a table, and its name."""
        parts = _table_parts(request)
        place = self._find(parts)
        self._manifest.remove(directory.join_id(parts))
        uri = self._root.child(place)
        if self._root.has_table(place):
            TablePlace(self._root.location.child(place)).drop()
        reserved = f"{place}/{_RESERVED}"
        if self._root.store.exists(reserved):
            self._root.store.delete(reserved)
        return DropTableResponse(id=parts, location=uri)

    def _register(self, parts: list[str]) -> str:
        """Reserve a folder for a table, in the manifest if there is one or has to be."""
        folder = directory.folder_of(parts, default_session().ids.uuid4().hex)
        if len(parts) == 1 and not self._manifest.exists():
            self._root.store.put(f"{folder}/{_RESERVED}", b"")
        elif not self._record(parts, folder):
            raise directory.TakenTable(f"Table already exists: {parts[-1]}")
        return folder

    def _record(self, parts: list[str], folder: str) -> bool:
        return self._manifest.add(directory.join_id(parts), directory.TABLE, location=folder)

    def _find(self, parts: list[str]) -> str:
        place = self._place(parts)
        if place is None:
            raise directory.MissingTable(f"Table not found: table id {directory.join_id(parts)!r}")
        return place

    def _place(self, parts: list[str]) -> str | None:
        listed = self._manifest.location(directory.join_id(parts))
        if listed is not None or len(parts) != 1:
            return listed
        folder = f"{parts[0]}{directory.SUFFIX}"
        is_reserved = self._root.store.exists(f"{folder}/{_RESERVED}")
        is_there = is_reserved or self._root.has_table(folder)
        return folder if is_there else None

    def _has_namespace(self, parts: list[str]) -> bool:
        return not parts or directory.join_id(parts) in self._manifest.rows(
            directory.NAMESPACE, directory.join_id(parts)
        )

    def _ensure_namespace(self, parts: list[str]) -> None:
        if not self._has_namespace(parts):
            raise directory.MissingNamespace(f"Namespace not found: {directory.join_id(parts)}")


def _page(request: Any, names: set[str]) -> directory.Paged:
    token, limit = getattr(request, "page_token", None), getattr(request, "limit", None)
    return directory.page_of(names, token, limit)


def _parts(request: Any) -> list[str]:
    return list(getattr(request, "id", None) or [])


def _table_parts(request: Any) -> list[str]:
    parts = _parts(request)
    if not parts:
        raise directory.InvalidInput("Invalid input: Table ID cannot be empty")
    return parts


def _mode(request: Any) -> str:
    name: str = getattr(request, "mode", None) or "create"
    mode = _MODES.get(name.lower().replace("_", ""))
    if mode is None:
        supported = "Supported modes are: 'Create', 'ExistOk', 'Overwrite'"
        raise directory.InvalidInput(
            f"Invalid input: Unsupported create_table mode '{name}'. {supported}"
        )
    return mode
