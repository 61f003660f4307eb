"""Warehouse folders as a catalog: locations of tables, and resolution of dotted names.

A table `db.t` is stored at `root/db/t.lance`, and one without a namespace at `root/t.lance`, as in
the directory namespace of official Lance. A namespace is a folder that is not a table; one that was
created by name contains the object `.namespace` with its properties. An external table, which is
stored elsewhere, is an object of its name below `.external` with its location.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lancelake.commit.versions import has_table
from lancelake.errors import (
    AlreadyExistsError,
    InvalidNameError,
    InvalidRequestError,
    NotFoundError,
    ObjectNotFoundError,
    UnsupportedError,
)
from lancelake.storage.leftovers import remove_empty_folders
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectStore
from lancelake.storage.trust import place_named_by
from lancelake.table.drop import drop_table

SUFFIX = ".lance"
CHANGES = "changes"
LATEST = "latest"
METADATA_TABLES = (
    "history",
    "versions",
    "fragments",
    "files",
    "refs",
    "indices",
    CHANGES,
    LATEST,
)
_MARKER = ".namespace"
_EXTERNAL = ".external"
_BRANCH, _TAG = "branch_", "tag_"

Namespace = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The meaning of a name: a table, optionally with a branch or tag, or a metadata table."""

    location: Location
    branch: str | None = None
    tag: str | None = None
    facts: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """Tables below one folder."""

    root: Location

    def resolve(self, namespace: Namespace, name: str) -> Named:
        """Resolve a name; it need not exist."""
        owner = self._owner(namespace, name)
        if owner is None:
            return Named(location=self.table(namespace, name))
        if name.lower() in METADATA_TABLES:
            return Named(location=owner, facts=name.lower())
        if name.startswith(_BRANCH):
            return Named(location=owner, branch=name.removeprefix(_BRANCH))
        return Named(location=owner, tag=name.removeprefix(_TAG))

    def table(self, namespace: Namespace, name: str) -> Location:
        """Return the location of a table; a name with a slash is a path."""
        if is_path(name) and not namespace:
            return self.root.beside(name)
        external = self.external(namespace, name)
        return self.own_location(namespace, name) if external is None else external

    def owns(self, namespace: Namespace, name: str) -> bool:  # noqa: ARG002
        """Whether a name can only be that of a Lance table."""
        return True

    def spelled(self, namespace: Namespace, name: str, *, is_exact: bool) -> tuple[Namespace, str]:
        """Return a name as an existing table is spelled, in another case unless `is_exact`."""
        if is_exact or is_path(name) or self.has_table(self.resolve(namespace, name).location):
            return namespace, name
        found: list[str] = []
        for part in (*namespace, name):
            known = [*self.tables(tuple(found)), *(n[-1] for n in self.namespaces(tuple(found)))]
            same = [n for n in known if n.lower() == part.lower()]
            found.append(part if part in same or not same else same[0])
        return tuple(found[:-1]), found[-1]

    def own_location(self, namespace: Namespace, name: str) -> Location:
        """Return the location of a table below the root."""
        return self.root.child("/".join((*map(_plain, namespace), _plain(name) + SUFFIX)))

    def external(self, namespace: Namespace, name: str) -> Location | None:
        """Return the location of an external table; None if there is none of this name."""
        if is_path(name):
            return None
        try:
            found = self._store.get(_pointer(namespace, name))
        except ObjectNotFoundError:
            return None
        return self.allowed_place(found.decode())

    def allowed_place(self, uri: str) -> Location:
        """Return the location of an external table, which is below the roots of a confinement."""
        if self.root.confine_to is None:
            return self.root.beside(uri)
        return place_named_by(self.root, uri)

    def add_external(self, namespace: Namespace, name: str, location: Location) -> None:
        """Give a table outside of the root a name."""
        self._store.put(_pointer(namespace, name), location.uri.encode())

    def forget_external(self, namespace: Namespace, name: str) -> bool:
        """Remove the name of an external table, and return whether there was one."""
        if self.external(namespace, name) is None:
            return False
        self._store.delete(_pointer(namespace, name))
        remove_empty_folders(self.root.child("/".join((*namespace, _EXTERNAL))))
        return True

    def tables(self, namespace: Namespace) -> list[str]:
        """List the tables of a namespace, sorted."""
        names = self._store.list_dirs(_folder(namespace))
        own = {n.removesuffix(SUFFIX) for n in names if n.endswith(SUFFIX) and n != SUFFIX}
        if _EXTERNAL in names:
            own.update(self._store.list_names("/".join((*namespace, _EXTERNAL))))
        return sorted(own)

    def namespaces(self, parent: Namespace) -> list[Namespace]:
        """List the namespaces directly below another, sorted."""
        names = self._store.list_dirs(_folder(parent))
        return sorted((*parent, n) for n in names if not n.endswith(SUFFIX) and n[0] not in "._")

    def has_namespace(self, namespace: Namespace) -> bool:
        """Whether a namespace exists; the root always does."""
        if not namespace:
            return True
        if any(is_path(part) for part in namespace):
            return False
        parent = self._store.list_dirs(_folder(namespace[:-1]))
        return namespace[-1] in parent and not namespace[-1].endswith(SUFFIX)

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """Create a namespace."""
        if self.has_namespace(namespace):
            raise AlreadyExistsError(f"namespace {'.'.join(namespace)} already exists")
        data = json.dumps(dict(properties)).encode()
        self._store.put(f"{_folder(tuple(map(_plain, namespace)))}/{_MARKER}", data)

    def properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of a namespace."""
        if not self.has_namespace(namespace):
            raise NotFoundError(f"namespace {'.'.join(namespace)} does not exist")
        place = self.root.child(_folder(namespace))
        try:
            data = self._store.get("/".join((*namespace, _MARKER)))
            said = json.loads(data)
        except (ObjectNotFoundError, ValueError, RecursionError):
            said = {}
        said = said if isinstance(said, dict) else {}
        return {**{str(k): str(v) for k, v in said.items()}, "location": place.uri}

    def alter_namespace(self, namespace: Namespace, changes: Mapping[str, str | None]) -> None:
        """Change the properties of a namespace; a property without a value is removed."""
        said = {k: v for k, v in self.properties(namespace).items() if k != "location"}
        after = {k: v for k, v in {**said, **changes}.items() if v is not None}
        self._store.put(f"{_folder(namespace)}/{_MARKER}", json.dumps(after).encode())

    def drop_namespace(self, namespace: Namespace, *, cascade: bool) -> bool:
        """Drop a namespace and return whether it existed; one with tables requires `cascade`."""
        if not namespace or not self.has_namespace(namespace):
            return False
        inner = [*self.tables(namespace), *self.namespaces(namespace)]
        if inner and not cascade:
            raise InvalidRequestError(f"namespace {'.'.join(namespace)} is not empty")
        for below in self.namespaces(namespace):
            self.drop_namespace(below, cascade=True)
        for name in self.tables(namespace):
            if not self.forget_external(namespace, name):
                self.drop_table(self.table(namespace, name))
        self._store.delete(f"{_folder(namespace)}/{_MARKER}")
        remove_empty_folders(self.root.child(_folder(namespace)))
        return True

    def drop_table(self, location: Location) -> None:
        """Drop a table with all its files."""
        drop_table(location, ignore_not_found=True)

    def rename_table(self, source: Location, target: Location) -> None:
        """Move a table to another location, atomically; only supported on file systems."""
        if source.scheme != "file":
            problem = f"{source.uri} cannot be renamed: its store does not support renaming folders"
            raise UnsupportedError(problem, action="Clone it under the new name, then drop it.")
        place = Path(target.uri)
        place.parent.mkdir(parents=True, exist_ok=True)
        Path(source.uri).rename(place)

    def has_table(self, location: Location) -> bool:
        """Whether there is a table at a location."""
        return has_table(location)

    def _owner(self, namespace: Namespace, name: str) -> Location | None:
        """Return the table whose metadata the last part of a name refers to."""
        is_facet = name.lower() in METADATA_TABLES or name.startswith((_BRANCH, _TAG))
        if not namespace or not is_facet:
            return None
        location = self.table(namespace[:-1], namespace[-1])
        return location if self.has_table(location) else None

    @property
    def _store(self) -> ObjectStore:
        return open_store(self.root)


def is_path(name: str) -> bool:
    """Whether a name is a path or URI."""
    return "/" in name


def _pointer(namespace: Namespace, name: str) -> str:
    return "/".join((*map(_plain, namespace), _EXTERNAL, _plain(name)))


def _folder(namespace: Namespace) -> str:
    return "/".join(namespace)


def _plain(name: str) -> str:
    if not name or name[0] in "._" or "/" in name or name.endswith(SUFFIX):
        raise InvalidNameError(f"{name!r} is not a valid name of a table or namespace")
    return name
