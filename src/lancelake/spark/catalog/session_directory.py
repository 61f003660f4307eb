"""Lance tables of Spark's session catalog: names in Spark's registry, rows in Lance tables."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.errors import UnsupportedError
from lancelake.spark.catalog.warehouse import Directory, Namespace, is_path
from lancelake.spark.jvm.session_tables import SessionRegistry
from lancelake.storage.location import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDirectory(Directory):
    """The tables `USING lance` of the session catalog; `root` has the options of the store."""

    registry: SessionRegistry

    def owns(self, namespace: Namespace, name: str) -> bool:
        """Whether a name is that of a Lance table, or of a branch or metadata table of one."""
        if len(namespace) > 1:
            return self._registered(namespace[:-1], namespace[-1]) is not None
        return self._registered(namespace, name) is not None

    def table(self, namespace: Namespace, name: str) -> Location:
        """Return the location of a table; a name with a slash is a path."""
        if is_path(name):
            return self.root.beside(name)
        found = self._registered(namespace, name)
        return self.own_location(namespace, name) if found is None else found

    def spelled(self, namespace: Namespace, name: str, *, is_exact: bool) -> tuple[Namespace, str]:  # noqa: ARG002
        """Return the name unchanged: Spark's registry compares names."""
        return namespace, name

    def own_location(self, namespace: Namespace, name: str) -> Location:
        """Return the location that Spark chooses for a new table."""
        return self.root.beside(self.registry.default_location(*pair(namespace, name)))

    def external(self, namespace: Namespace, name: str) -> Location | None:
        """Return the location of an external table; None if there is none of this name."""
        if len(namespace) != 1 or is_path(name) or not self.registry.is_external(*namespace, name):
            return None
        return self._registered(namespace, name)

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

    def _registered(self, namespace: Namespace, name: str) -> Location | None:
        uri = self.registry.location(*namespace, name) if len(namespace) == 1 else None
        return None if uri is None else self.root.beside(uri)


def pair(namespace: Namespace, name: str) -> tuple[str, str]:
    """Return the database and the name of a table."""
    if len(namespace) != 1:
        problem = f"{'.'.join((*namespace, name))} is not a database and a table"
        raise UnsupportedError(problem, action="The session catalog has one level of databases.")
    return namespace[0], name
