"""Catalogs of Lance tables."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from lancelake.core.values.metadata import Location, Snapshot, quoted_name
from lancelake.core.values.versions import (
    AsOf,
    AtTag,
    AtVersion,
    Reference,
)
from lancelake.errors import (
    AlreadyExistsError,
    InvalidNameError,
    RefNotFoundError,
    TableNotFoundError,
    UnsupportedError,
)
from lancelake.spark.connector.request_tables import (
    FactsTable,
    FeedTable,
    LanceChangelog,
    LatestTable,
    changelog_versions,
)
from lancelake.spark.connector.staged_table import TableDefinition
from lancelake.spark.connector.table_changes import TableChanges
from lancelake.spark.connector.writable_table import WritableTable
from lancelake.spark.jars import SESSION_CATALOG
from lancelake.spark.jobs.fitted_rows import CASE_SENSITIVE
from lancelake.spark.jvm.catalyst import remember_answers
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import TableProxy, asks_for_existence, implements
from lancelake.spark.reading.version_table import VersionTable
from lancelake.spark.sql.table_names import directory_of, session_directory
from lancelake.spark.sql.warehouse import (
    CHANGES,
    LATEST,
    Directory,
    Named,
    Namespace,
    SessionDirectory,
    is_path,
    pair,
)
from lancelake.spark.tasks.change_feed import Versions

_MOST_TABLES = 64


@implements("catalog.StagingTableCatalog", "catalog.SupportsNamespaces", "catalog.ProcedureCatalog")
class LanceCatalog(TableChanges):
    """The tables below one folder, and any table by its path."""

    directory: Directory

    def __init__(self, gateway: Gateway, name: str) -> None:
        super().__init__(gateway)
        self.directory = directory_of(gateway, name)
        self._name = name
        self._tables: dict[object, Any] = {}

    def name(self) -> str:
        return self._name

    def listTables(self, namespace: Any) -> Any:
        parts = self._existing_namespace(namespace)
        make = self.gateway.connector("catalog.Identifier")
        names = self.directory.tables(parts)
        idents = [make.of(self.gateway.strings(parts), name) for name in names]
        return self.gateway.array(make, idents)

    def loadTable(self, ident: Any, *context: Any) -> Any:
        table = self._open_table(ident, *context)
        if isinstance(table, WritableTable):
            return self._same_as_before(table)
        return table

    def _open_table(self, ident: Any, *context: Any) -> TableProxy:
        """Open the table of a name."""
        travel = _time_travel(context)
        try:
            parts, named, snapshot = self._open(ident, travel)
        except RefNotFoundError as error:
            if asks_for_existence(self.gateway):
                raise self.no_such_table(ident) from error
            raise
        except TableNotFoundError as error:
            may_be_missing = _is_for_writing(context) or asks_for_existence(self.gateway)
            if may_be_missing or not is_path(ident.name()):
                raise self.no_such_table(ident) from error
            # Spark would otherwise continue with files of a format of this name.
            raise
        name = f"{self._name}.{ident.toString()}"
        if named.facts == CHANGES:
            return FeedTable(self.gateway, snapshot, Versions(), name)
        if named.facts == LATEST:
            return self._latest(snapshot, travel, name)
        if named.facts is not None:
            return FactsTable(self.gateway, snapshot, named.facts, name)
        if travel is not None or named.tag is not None:
            return VersionTable(self.gateway, snapshot, name)
        is_external = self.directory.external(*parts) is not None
        return WritableTable(self.gateway, snapshot, name, is_external=is_external)

    def _same_as_before(self, table: WritableTable) -> Any:
        """Return the table of a version: the same as before, unless there is a newer one.

        Spark loads a table twice for each query, and asks a new object everything again.
        """
        remembered = self._tables.pop(table.key, None)
        if remembered is None:
            remembered = remember_answers(self.gateway, table, table.facts())
        self._tables[table.key] = remembered  # the last one
        if len(self._tables) > _MOST_TABLES:
            self._tables.pop(next(iter(self._tables)))
        return remembered

    def _latest(self, snapshot: Snapshot, travel: Reference | None, name: str) -> LatestTable:
        if travel is not None:
            problem = "the latest rows of a table have no earlier versions"
            raise UnsupportedError(problem, table=snapshot.location.uri)
        return LatestTable(self.gateway, snapshot, name)

    def _open(
        self, ident: Any, travel: Reference | None
    ) -> tuple[tuple[Namespace, str], Named, Snapshot]:
        """Open a table by its exact name, or else by its name in another case."""
        exact = (tuple(ident.namespace()), ident.name())
        named = self.directory.resolve(*exact)
        try:
            return exact, named, named.open(travel).snapshot
        except RefNotFoundError as error:
            if "branch" not in error.facts:
                raise
            part = f"branch_{error.facts['branch']}"
            part = part if part.isidentifier() else quoted_name(part)
            action = f"Read it as {self._name}.{ident.toString()}.{part}."
            raise RefNotFoundError(
                error.problem, table=error.table, action=action, branch=error.facts["branch"]
            ) from error
        except TableNotFoundError:
            parts = self._spell(ident)
            if parts == exact:
                raise
        named = self.directory.resolve(*parts)
        return parts, named, named.open(travel).snapshot

    def loadChangelog(self, ident: Any, context: Any, options: Any) -> Any:  # noqa: ARG002
        named = self.directory.resolve(*self._spell(ident))
        try:
            snapshot = named.open().snapshot
        except TableNotFoundError as error:
            raise self.no_such_table(ident) from error
        name = f"{self._name}.{ident.toString()}"
        return LanceChangelog(self.gateway, snapshot, changelog_versions(context), name)

    def tableExists(self, ident: Any) -> bool:
        try:
            return self.directory.exists(self.directory.resolve(*self._spell(ident)))
        except InvalidNameError:
            return False

    def dropTable(self, ident: Any) -> bool:
        try:
            location = self.location_of(ident)
        except InvalidNameError:
            # Pipelines drop tables of Spark's own, with such names, that may exist.
            return False
        if self.directory.forget_external(*self._spell(ident)):
            return True
        if not self.directory.has_table(location):
            return False
        self.directory.drop_table(location)
        return True

    def listNamespaces(self, *parent: Any) -> Any:
        parts = self._existing_namespace(parent[0]) if parent else ()
        namespaces = [self.gateway.strings(n) for n in self.directory.namespaces(parts)]
        result = self.gateway.gateway.new_array(
            self.gateway.cls("java.lang.String"), len(namespaces), 0
        )
        put = self.gateway.member("java.lang.reflect.Array", "set")
        for position, names in enumerate(namespaces):
            put(result, position, names)
        return result

    def namespaceExists(self, namespace: Any) -> bool:
        return self.directory.has_namespace(tuple(namespace))

    def loadNamespaceMetadata(self, namespace: Any) -> Any:
        return self.gateway.map(self.directory.properties(self._existing_namespace(namespace)))

    def createNamespace(self, namespace: Any, properties: Any) -> None:
        try:
            self.directory.create_namespace(tuple(namespace), dict(properties))
        except AlreadyExistsError as error:
            raise self.namespace_exists(namespace) from error

    def dropNamespace(self, namespace: Any, cascade: bool) -> bool:
        return self.directory.drop_namespace(tuple(namespace), cascade=cascade)

    def _existing_namespace(self, namespace: Any) -> Namespace:
        parts = tuple(namespace)
        if not self.directory.has_namespace(parts):
            raise self.no_such_namespace(namespace)
        return parts

    def location_of(self, ident: Any) -> Location:
        namespace, name = self._spell(ident)
        named = self.directory.resolve(namespace, name)
        if named.part is None:
            return named.location
        kind, home = named.part.split()[0], f"CALL {self._name}.system"
        action = f"Make one with {home}.{kind}, and remove one with {home}.drop_{kind}."
        raise UnsupportedError(
            f"{self._name}.{ident.toString()} is the {named.part} of a table, and cannot be "
            "created, replaced, renamed or dropped like a table",
            table=named.location.uri,
            action=None if named.facts else action,
        )

    def _spell(self, ident: Any) -> tuple[Namespace, str]:
        is_exact = self.gateway.conf(CASE_SENSITIVE, "false").lower() == "true"
        return self.directory.spell(tuple(ident.namespace()), ident.name(), is_exact=is_exact)

    def definition(self, ident: Any, details: tuple[Any, ...]) -> TableDefinition:
        definition = TableDefinition.of(self.gateway, self.location_of(ident), details)
        if definition.chosen_location is None or is_path(ident.name()):
            return definition
        namespace, name = tuple(ident.namespace()), ident.name()
        own = self.directory.own_location(namespace, name)
        if self.directory.has_table(own):
            problem = (
                f"{self._name}.{ident.toString()} cannot get a LOCATION: it is a managed table"
            )
            raise UnsupportedError(problem, table=own.uri, action="Drop it first.")
        place = self.directory.allowed_place(definition.chosen_location)
        add = functools.partial(self.directory.add_external, namespace, name, place)
        return replace(definition, location=place, after_commit=add, may_exist=True)


def _time_travel(context: tuple[Any, ...]) -> Reference | None:
    """Parse `VERSION AS OF` or `TIMESTAMP AS OF`, which Spark versions pass in different ways."""
    if not context:
        return None
    request = context[0]
    if isinstance(request, str):
        return _version(request)
    if isinstance(request, int):
        return AsOf(request)
    if not hasattr(request, "timeTravel") or "TableContext" not in request.getClass().getName():
        return None
    travel = request.timeTravel()
    if not travel.isPresent():
        return None
    if "AsOfVersion" in travel.get().getClass().getName():
        return _version(travel.get().version())
    return AsOf(travel.get().micros())


def _is_for_writing(context: tuple[Any, ...]) -> bool:
    """Whether a table is loaded for writing, in which case it may not exist yet."""
    if not context or isinstance(context[0], str | int):
        return False
    request = context[0]
    privileges = request.writePrivileges() if hasattr(request, "writePrivileges") else request
    return not privileges.isEmpty()


def _version(text: str) -> Reference:
    return AtVersion(int(text)) if text.isdigit() else AtTag(text)


@implements("catalog.StagingTableCatalog")
class SessionLanceTables(LanceCatalog):
    """Handles the Lance tables of the session catalog; Spark handles all others."""

    directory: SessionDirectory

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway, SESSION_CATALOG)
        self.directory = session_directory(gateway)
        self.registry = self.directory.registry

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
            return self._define_existing(ident, details)
        if self.registry.is_taken(*pair(namespace, name)):
            problem = f"{self.name()}.{ident.toString()} is not a Lance table"
            raise UnsupportedError(problem, action="Drop it first.")
        definition = TableDefinition.of(
            self.gateway, self.directory.own_location(namespace, name), details
        )
        is_external = definition.chosen_location is not None
        place = self.directory.allowed_place(definition.chosen_location or definition.location.uri)
        add = functools.partial(
            self.registry.add, *pair(namespace, name), place.uri, is_external=is_external
        )
        return replace(definition, location=place, after_commit=add, may_exist=is_external)

    def ensure_free(self, ident: Any) -> None:
        """Raise an exception if a table of any format, or a view, has this name."""
        if self.registry.is_taken(*pair(tuple(ident.namespace()), ident.name())):
            raise self.table_exists(ident)

    def _define_existing(self, ident: Any, details: tuple[Any, ...]) -> TableDefinition:
        """Return the definition that replaces a table, which stays at its location."""
        definition = TableDefinition.of(self.gateway, self.location_of(ident), details)
        location = definition.chosen_location
        if location is not None and self.directory.allowed_place(location) != definition.location:
            problem = f"{self.name()}.{ident.toString()} cannot be replaced at another location"
            raise UnsupportedError(problem, table=definition.location.uri, action="Drop it first.")
        return definition
