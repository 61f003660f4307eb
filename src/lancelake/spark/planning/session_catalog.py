"""Lance tables in Spark's session catalog: `CREATE TABLE t USING lance`, `saveAsTable("t")`."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from lancelake.errors import UnsupportedError
from lancelake.spark.catalog.session_directory import SessionDirectory, pair
from lancelake.spark.catalog.table_names import remember
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import implements
from lancelake.spark.jvm.session_tables import SESSION_CATALOG, SessionRegistry, has_own_catalog
from lancelake.spark.planning.catalog import LanceCatalog
from lancelake.spark.planning.staged_table import TableDefinition


def remember_session_tables(gateway: Gateway, root: str) -> None:
    """Let names of the session catalog be resolved in this application.

    The session must be one that stays: every session that is derived from it has the same tables.
    """
    if has_own_catalog(gateway):
        remember(gateway.spark, SESSION_CATALOG, SessionLanceTables(gateway, root).directory)


@implements("catalog.StagingTableCatalog")
class SessionLanceTables(LanceCatalog):
    """Handles the Lance tables of the session catalog; Spark handles all others."""

    directory: SessionDirectory

    def __init__(self, gateway: Gateway, root: str) -> None:
        super().__init__(gateway, SESSION_CATALOG, root)
        self.registry = SessionRegistry(gateway)
        self.directory = SessionDirectory(root=self.directory.root, registry=self.registry)

    def createTable(self, ident: Any, *details: Any) -> Any:
        self.ensure_free(ident)
        return super().createTable(ident, *details)

    def stageCreate(self, ident: Any, *details: Any) -> Any:
        self.ensure_free(ident)
        return super().stageCreate(ident, *details)

    def dropTable(self, ident: Any) -> bool:
        namespace, name = tuple(ident.namespace()), ident.name()
        if not self.directory.owns(namespace, name):
            return False
        if not self.directory.forget_external(namespace, name):
            self.directory.drop_table(self.directory.table(namespace, name))
            self.registry.remove(*pair(namespace, name))
        return True

    def renameTable(self, old: Any, new: Any) -> None:
        self.ensure_free(new)
        before, after = (pair(tuple(each.namespace()), each.name()) for each in (old, new))
        self.registry.rename(before, after)

    def definition(self, ident: Any, details: tuple[Any, ...]) -> TableDefinition:
        namespace, name = tuple(ident.namespace()), ident.name()
        if self.directory.owns(namespace, name):
            return self._of_known(ident, details)
        if self.registry.is_taken(*pair(namespace, name)):
            problem = f"{self.name()}.{ident.toString()} is not a Lance table"
            raise UnsupportedError(problem, action="Drop it first.")
        found = TableDefinition.of(
            self.gateway, self.directory.own_location(namespace, name), details
        )
        is_external = found.chosen_location is not None
        place = self.directory.allowed_place(found.chosen_location or found.location.uri)
        add = functools.partial(
            self.registry.add, *pair(namespace, name), place.uri, is_external=is_external
        )
        return replace(found, location=place, after_commit=add, may_exist=is_external)

    def ensure_free(self, ident: Any) -> None:
        """Raise an exception if a table of any format, or a view, has this name."""
        if self.registry.is_taken(*pair(tuple(ident.namespace()), ident.name())):
            raise self.table_exists(ident)

    def _of_known(self, ident: Any, details: tuple[Any, ...]) -> TableDefinition:
        """Return the definition that replaces a table, which stays at its location."""
        found = TableDefinition.of(self.gateway, self.location_of(ident), details)
        chosen = found.chosen_location
        if chosen is not None and self.directory.allowed_place(chosen) != found.location:
            problem = f"{self.name()}.{ident.toString()} cannot be replaced at another location"
            raise UnsupportedError(problem, table=found.location.uri, action="Drop it first.")
        return found
