"""Where the tables of a catalog are.

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

from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values.metadata import (
    Location,
    ObjectStore,
    place_named_by,
    remove_empty_folders,
)
from lancelake.core.values.versions import AtTag, Latest, Reference
from lancelake.errors import (
    AlreadyExistsError,
    InvalidNameError,
    InvalidRequestError,
    NotFoundError,
    ObjectNotFoundError,
    RefNotFoundError,
    UnsupportedError,
)
from lancelake.spark.jvm.session_tables import SessionRegistry
from lancelake.spark.values.options import open_on

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

    @property
    def part(self) -> str | None:
        """The branch, tag or metadata table that is named; None for a whole table."""
        if self.facts is not None:
            return f"metadata table {self.facts}"
        if self.tag is not None:
            return f"tag {self.tag}"
        return None if self.branch is None else f"branch {self.branch}"

    def open(self, travel: Reference | None = None) -> Table:
        """Open the version that is named, or another of the same table or branch."""
        if self.tag is not None:
            return open_on(self.location, None, AtTag(self.tag))
        return open_on(self.location, self.branch, travel or Latest())


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

    def spell(self, namespace: Namespace, name: str, *, is_exact: bool) -> tuple[Namespace, str]:
        """Return a name as an existing table is spelled, in another case unless `is_exact`."""
        if is_exact or is_path(name) or self.has_table(self.resolve(namespace, name).location):
            return namespace, name
        spelling: Namespace = ()
        for part in (*namespace, name):
            names = [*self.tables(spelling), *(n[-1] for n in self.namespaces(spelling))]
            same = [n for n in names if n.lower() == part.lower()]
            spelling = (*spelling, part if part in same or not same else same[0])
        return spelling[:-1], spelling[-1]

    def own_location(self, namespace: Namespace, name: str) -> Location:
        """Return the location of a table below the root."""
        return self.root.child("/".join((*map(_plain, namespace), _plain(name) + SUFFIX)))

    def external(self, namespace: Namespace, name: str) -> Location | None:
        """Return the location of an external table; None if there is none of this name."""
        if is_path(name):
            return None
        try:
            uri = self._store.get(_pointer(namespace, name)).decode()
        except ObjectNotFoundError:
            return None
        return self.allowed_place(uri)

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
            stored = json.loads(self._store.get("/".join((*namespace, _MARKER))))
        except (ObjectNotFoundError, ValueError, RecursionError):
            stored = {}
        stored = stored if isinstance(stored, dict) else {}
        return {**{str(k): str(v) for k, v in stored.items()}, "location": place.uri}

    def alter_namespace(self, namespace: Namespace, changes: Mapping[str, str | None]) -> None:
        """Change the properties of a namespace; a property without a value is removed."""
        before = {k: v for k, v in self.properties(namespace).items() if k != "location"}
        after = {k: v for k, v in {**before, **changes}.items() if v is not None}
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
        TablePlace(location).drop(ignore_not_found=True)

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
        return TablePlace(location).has_table()

    def exists(self, named: Named) -> bool:
        """Whether there is a table, branch, tag or metadata table of a name."""
        place = TablePlace(named.location)
        try:
            if named.tag is not None:
                place.load_tag(named.tag)
            elif named.branch not in (None, "main"):
                place.load_branch(named.branch or "")
        except (RefNotFoundError, InvalidNameError):
            return False
        return self.has_table(named.location)

    def _owner(self, namespace: Namespace, name: str) -> Location | None:
        """Return the table whose metadata the last part of a name refers to."""
        is_facet = name.lower() in METADATA_TABLES or name.startswith((_BRANCH, _TAG))
        if not namespace or not is_facet:
            return None
        location = self.table(namespace[:-1], namespace[-1])
        return location if self.has_table(location) else None

    @property
    def _store(self) -> ObjectStore:
        return self.root.store


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDirectory(Directory):
    """The tables `USING lance` of the session catalog; `root` has the options of the store."""

    registry: SessionRegistry

    def owns(self, namespace: Namespace, name: str) -> bool:
        """Whether a name is that of a Lance table, or of a branch or metadata table of one."""
        if len(namespace) > 1:
            return self._registered_location(namespace[:-1], namespace[-1]) is not None
        return self._registered_location(namespace, name) is not None

    def table(self, namespace: Namespace, name: str) -> Location:
        """Return the location of a table; a name with a slash is a path."""
        if is_path(name):
            return self.root.beside(name)
        location = self._registered_location(namespace, name)
        return self.own_location(namespace, name) if location is None else location

    def spell(self, namespace: Namespace, name: str, *, is_exact: bool) -> tuple[Namespace, str]:  # noqa: ARG002
        """Return the name unchanged: Spark's registry compares names."""
        return namespace, name

    def own_location(self, namespace: Namespace, name: str) -> Location:
        """Return the location that Spark chooses for a new table."""
        return self.root.beside(self.registry.default_location(*pair(namespace, name)))

    def external(self, namespace: Namespace, name: str) -> Location | None:
        """Return the location of an external table; None if there is none of this name."""
        if len(namespace) != 1 or is_path(name) or not self.registry.is_external(*namespace, name):
            return None
        return self._registered_location(namespace, name)

    def add_external(self, namespace: Namespace, name: str, location: Location) -> None:
        """Give a table outside of the warehouse a name."""
        self.registry.add(*pair(namespace, name), location.uri, is_external=True)

    def forget_external(self, namespace: Namespace, name: str) -> bool:
        """Remove the name of an external table, and return whether there was one."""
        if self.external(namespace, name) is None:
            return False
        self.registry.remove(*pair(namespace, name))
        return True

    def tables(self, namespace: Namespace) -> list[str]:
        """List the Lance tables of a database, sorted."""
        return self.registry.names(namespace[0]) if len(namespace) == 1 else []

    def _registered_location(self, namespace: Namespace, name: str) -> Location | None:
        uri = self.registry.location(*namespace, name) if len(namespace) == 1 else None
        return None if uri is None else self.root.beside(uri)


def pair(namespace: Namespace, name: str) -> tuple[str, str]:
    """Return the database and the name of a table."""
    if len(namespace) != 1:
        problem = f"{'.'.join((*namespace, name))} is not a database and a table"
        raise UnsupportedError(problem, action="The session catalog has one level of databases.")
    return namespace[0], name
