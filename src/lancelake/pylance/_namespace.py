"""Places and manifest of a directory namespace.

Both have an attribute `code`; it is that of this package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import lance_namespace as api
import pyarrow as pa

from lancelake import errors
from lancelake.core.values.metadata import Location, ObjectStore, layout
from lancelake.core.values.reads import quoted
from lancelake.pylance._dataset.state import Session, locate
from lancelake.pylance.dataset import LanceDataset, write_dataset

TABLE, NAMESPACE = "table", "namespace"
_FOLDER = "__manifest"
_KEY = "object_id"
_IS_KEY = {"lance-schema:unenforced-primary-key": "true"}
_SCHEMA = pa.schema(
    [
        pa.field(_KEY, pa.string(), nullable=False, metadata=_IS_KEY),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field(_KEY, pa.string()))),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """Folder of a namespace, its storage options, and the session of tables in memory."""

    uri: str
    options: dict[str, str] | None
    session: Session = field(default_factory=Session)

    @property
    def location(self) -> Location:
        """The folder as the storage layer knows it."""
        return locate(self.uri, self.options, session=self.session)

    @property
    def store(self) -> ObjectStore:
        """The store of the folder."""
        return self.location.store

    def child(self, folder: str) -> str:
        """Return the URI of a folder below."""
        is_private = self.uri.startswith("memory://")
        return f"{self.uri.rstrip('/')}/{folder}" if is_private else self.location.child(folder).uri

    def has_table(self, folder: str) -> bool:
        """Whether a folder has versions of a table."""
        return bool(self.store.list_names(f"{folder}/{layout.VERSIONS}"))

    def open(self, folder: str) -> LanceDataset:
        """Open the table in a folder."""
        return LanceDataset(self.child(folder), storage_options=self.options, session=self.session)

    def write(self, rows: Any, folder: str, mode: Literal["create", "overwrite"]) -> LanceDataset:
        """Write the table in a folder."""
        return write_dataset(
            rows,
            self.child(folder),
            mode=mode,
            storage_options=self.options,
            session=self.session,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Tables and namespaces by id; empty until something is added."""

    root: Root
    is_used: bool = True

    def exists(self) -> bool:
        """Whether the root has a manifest that is used."""
        return self.is_used and self.root.has_table(_FOLDER)

    def rows(self, kind: str | None = None, name: str | None = None) -> dict[str, dict[str, Any]]:
        """Return the entries by id: all, those of a kind, or the one of a name."""
        if not self.exists():
            return {}
        tests = {"object_type": kind, _KEY: name}
        conditions = [f"{column} = {quoted(value)}" for column, value in tests.items() if value]
        table = self.root.open(_FOLDER).to_table(filter=" AND ".join(conditions) or None)
        return {row[_KEY]: row for row in table.to_pylist()}

    def location(self, name: str) -> str | None:
        """Return the folder of a table, None if it is not listed."""
        entry = self.rows(TABLE, name).get(name)
        return None if entry is None else entry["location"]

    def add(self, name: str, kind: str, **values: str | None) -> bool:
        """Add an entry unless its name is taken, and say whether it was added.

        The manifest is made with the first entry.
        """
        if not self.exists():
            self.root.write(_SCHEMA.empty_table(), _FOLDER, "create")
        table = self.root.open(_FOLDER)
        row = {_KEY: name, "object_type": kind, **values}
        schema = pa.schema([table.schema.field(each) for each in row if each in table.schema.names])
        new = pa.Table.from_pylist([row], schema=schema)
        merged = table.merge_insert(_KEY).when_not_matched_insert_all().execute(new)
        return merged["num_inserted_rows"] > 0

    def remove(self, name: str) -> None:
        """Remove an entry, if there is one."""
        if self.exists():
            self.root.open(_FOLDER).delete(f"{_KEY} = {quoted(name)}")


class MissingTable(errors.TableNotFoundError, api.TableNotFoundError):
    """A table that the namespace does not have."""

    code: ClassVar[str] = "namespace_table_not_found"  # type: ignore[misc, assignment]


class TakenTable(errors.AlreadyExistsError, api.TableAlreadyExistsError):
    """A new table whose name is taken."""

    code: ClassVar[str] = "namespace_table_exists"  # type: ignore[misc, assignment]


class MissingNamespace(errors.NotFoundError, api.NamespaceNotFoundError):
    """A namespace that does not exist."""

    code: ClassVar[str] = "namespace_not_found"  # type: ignore[misc, assignment]


class TakenNamespace(errors.AlreadyExistsError, api.NamespaceAlreadyExistsError):
    """A new namespace whose name is taken."""

    code: ClassVar[str] = "namespace_exists"  # type: ignore[misc, assignment]


class NamespaceNotEmpty(errors.InvalidRequestError, api.NamespaceNotEmptyError):
    """A namespace to drop that has tables or namespaces."""

    code: ClassVar[str] = "namespace_not_empty"  # type: ignore[misc, assignment]


class InvalidInput(errors.InvalidRequestError, api.InvalidInputError):
    """A request that cannot be understood."""

    code: ClassVar[str] = "namespace_request"  # type: ignore[misc, assignment]


SUFFIX = ".lance"
_SEPARATOR = "$"
_PREFIX_DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Paged:
    """Names in order, and the token of the next page."""

    names: list[str]
    token: str | None = None


def join_id(parts: Sequence[str]) -> str:
    """Return the id of a table or a namespace in the manifest."""
    return _SEPARATOR.join(parts)


def folder_of(parts: Sequence[str], unique: str) -> str:
    """Return the folder of a new table; below a namespace its name begins with unique digits."""
    if len(parts) == 1:
        return f"{parts[0]}{SUFFIX}"
    return f"{unique[:_PREFIX_DIGITS]}_{join_id(parts)}"


def names_below(ids: Iterable[str], parent: Sequence[str]) -> set[str]:
    """Return the last names of the ids directly below a namespace."""
    prefix = f"{join_id(parent)}{_SEPARATOR}" if parent else ""
    rest = (each.removeprefix(prefix) for each in ids if each.startswith(prefix))
    return {name for name in rest if _SEPARATOR not in name}


def count_below(ids: Iterable[str], parent: Sequence[str]) -> int:
    """Return the number of ids anywhere below a namespace."""
    return sum(each.startswith(f"{join_id(parent)}{_SEPARATOR}") for each in ids)


def page_of(names: Iterable[str], token: str | None, limit: int | None) -> Paged:
    """Return the names after the one that the token is, and at most as many as the limit."""
    left = sorted(name for name in names if token is None or name > token)
    if limit is None or len(left) <= limit:
        return Paged(names=left)
    return Paged(names=left[:limit], token=left[limit - 1])


def ensure_inside(location: str) -> None:
    """Refuse a location that is not a path below the root."""
    where = f"Location must be a relative path within the root directory: {location}"
    if "://" in location:
        problem = f"Absolute URIs are not allowed for register_table. {where}"
    elif location.startswith("/"):
        problem = f"Absolute paths are not allowed for register_table. {where}"
    elif ".." in location.split("/"):
        problem = f"Path traversal is not allowed. {where}"
    else:
        return
    raise InvalidInput(f"Invalid input: {problem}")
