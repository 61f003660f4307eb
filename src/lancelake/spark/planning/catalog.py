"""Catalog of Lance tables for SQL: tables, namespaces and time travel."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import AlreadyExistsError, TableNotFoundError, UnsupportedError
from lancelake.spark.catalog.warehouse import (
    CHANGES,
    LATEST,
    Directory,
    Named,
    Namespace,
    is_path,
)
from lancelake.spark.jvm.failures import asks_for_existence
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import implements
from lancelake.spark.options.table_options import location_at, split_storage
from lancelake.spark.planning.changelog import changelog_versions
from lancelake.spark.planning.facts_table import FactsTable
from lancelake.spark.planning.feed_table import FeedTable, LanceChangelog
from lancelake.spark.planning.latest_table import LatestTable
from lancelake.spark.planning.staged_table import TableDefinition
from lancelake.spark.planning.table_changes import TableChanges
from lancelake.spark.planning.writable_table import WritableTable
from lancelake.spark.reading.change_feed import Versions
from lancelake.spark.reading.version_table import VersionTable
from lancelake.spark.writing.column_names import CASE_SENSITIVE
from lancelake.storage.location import Location
from lancelake.table.open import (
    AsOf,
    AtTag,
    AtVersion,
    Latest,
    OnBranch,
    Reference,
    open_snapshot,
)
from lancelake.table.refs import branch_location

_CAPABILITIES = ("SUPPORT_COLUMN_DEFAULT_VALUE", "SUPPORT_TABLE_CONSTRAINT")


@implements("catalog.StagingTableCatalog", "catalog.SupportsNamespaces", "catalog.ProcedureCatalog")
class LanceCatalog(TableChanges):
    """The tables below one folder, and any table by its path."""

    def __init__(self, gateway: Gateway, name: str, root: str) -> None:
        super().__init__(gateway)
        storage, _ = split_storage(_settings(gateway, name))
        self.directory = Directory(root=location_at(root, storage))
        self._name = name

    def name(self) -> str:
        return self._name

    def capabilities(self) -> Any:
        known = self.gateway.connector("catalog.TableCatalogCapability").values()
        return self.gateway.set([can for can in known if can.name() in _CAPABILITIES])

    def listTables(self, namespace: Any) -> Any:
        parts = self._known(namespace)
        make = self.gateway.connector("catalog.Identifier")
        names = self.directory.tables(parts)
        found = [make.of(self.gateway.strings(parts), name) for name in names]
        return self.gateway.array(make, found)

    def loadTable(self, ident: Any, *context: Any) -> Any:
        travel = _time_travel(context)
        try:
            parts, named, snapshot = self._found(ident, travel)
        except TableNotFoundError as error:
            if not is_path(ident.name()) or self._may_be_missing(context):
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

    def _latest(self, snapshot: Snapshot, travel: Reference | None, name: str) -> LatestTable:
        if travel is not None:
            problem = "the latest rows of a table have no earlier versions"
            raise UnsupportedError(problem, table=snapshot.location.uri)
        return LatestTable(self.gateway, snapshot, name)

    def _found(
        self, ident: Any, travel: Reference | None
    ) -> tuple[tuple[Namespace, str], Named, Snapshot]:
        """Open a table by its exact name, or else by its name in another case."""
        exact = (tuple(ident.namespace()), ident.name())
        named = self.directory.resolve(*exact)
        try:
            return exact, named, _opened(named, travel)
        except TableNotFoundError:
            parts = self._written(ident)
            if parts == exact:
                raise
        named = self.directory.resolve(*parts)
        return parts, named, _opened(named, travel)

    def loadChangelog(self, ident: Any, context: Any, options: Any) -> Any:  # noqa: ARG002
        named = self.directory.resolve(*self._written(ident))
        try:
            snapshot = _opened(named, None)
        except TableNotFoundError as error:
            raise self.no_such_table(ident) from error
        name = f"{self._name}.{ident.toString()}"
        return LanceChangelog(self.gateway, snapshot, changelog_versions(context), name)

    def tableExists(self, ident: Any) -> bool:
        named = self.directory.resolve(*self._written(ident))
        return self.directory.has_table(named.location)

    def dropTable(self, ident: Any) -> bool:
        namespace, name = self._written(ident)
        if self.directory.forget_external(namespace, name):
            return True
        location = self.directory.table(namespace, name)
        if not self.directory.has_table(location):
            return False
        self.directory.drop_table(location)
        return True

    def listNamespaces(self, *parent: Any) -> Any:
        parts = self._known(parent[0]) if parent else ()
        found = [self.gateway.strings(n) for n in self.directory.namespaces(parts)]
        result = self.gateway.gateway.new_array(self.gateway.cls("java.lang.String"), len(found), 0)
        put = self.gateway.member("java.lang.reflect.Array", "set")
        for position, names in enumerate(found):
            put(result, position, names)
        return result

    def namespaceExists(self, namespace: Any) -> bool:
        return self.directory.has_namespace(tuple(namespace))

    def loadNamespaceMetadata(self, namespace: Any) -> Any:
        return self.gateway.map(self.directory.properties(self._known(namespace)))

    def createNamespace(self, namespace: Any, properties: Any) -> None:
        try:
            self.directory.create_namespace(tuple(namespace), dict(properties))
        except AlreadyExistsError as error:
            raise self.namespace_exists(namespace) from error

    def dropNamespace(self, namespace: Any, cascade: bool) -> bool:
        return self.directory.drop_namespace(tuple(namespace), cascade=cascade)

    def _may_be_missing(self, context: tuple[Any, ...]) -> bool:
        return _is_for_writing(context) or asks_for_existence(self.gateway)

    def _known(self, namespace: Any) -> Namespace:
        parts = tuple(namespace)
        if not self.directory.has_namespace(parts):
            raise self.no_such_namespace(namespace)
        return parts

    def location_of(self, ident: Any) -> Location:
        return self.directory.table(*self._written(ident))

    def _written(self, ident: Any) -> tuple[Namespace, str]:
        is_exact = self.gateway.conf(CASE_SENSITIVE, "false").lower() == "true"
        return self.directory.spelled(tuple(ident.namespace()), ident.name(), is_exact=is_exact)

    def definition(self, ident: Any, details: tuple[Any, ...]) -> TableDefinition:
        found = TableDefinition.of(self.gateway, self.location_of(ident), details)
        if found.chosen_location is None or is_path(ident.name()):
            return found
        namespace, name = tuple(ident.namespace()), ident.name()
        own = self.directory.own_location(namespace, name)
        if self.directory.has_table(own):
            problem = (
                f"{self._name}.{ident.toString()} cannot get a LOCATION: it is a managed table"
            )
            raise UnsupportedError(problem, table=own.uri, action="Drop it first.")
        place = self.directory.allowed_place(found.chosen_location)
        add = functools.partial(self.directory.add_external, namespace, name, place)
        return replace(found, location=place, after_commit=add, may_exist=True)


def _settings(gateway: Gateway, name: str) -> dict[str, str]:
    """Return the settings `spark.sql.catalog.<name>.*`, which may include options of the store."""
    prefix = f"spark.sql.catalog.{name}."
    every = gateway.spark.sparkContext.getConf().getAll()
    return {key.removeprefix(prefix): value for key, value in every if key.startswith(prefix)}


def _opened(named: Named, travel: Reference | None) -> Snapshot:
    location = named.location
    if named.tag is not None:
        return open_snapshot(location, AtTag(named.tag))
    if named.branch is None:
        return open_snapshot(location, travel or Latest())
    match travel:
        case None:
            return open_snapshot(location, OnBranch(named.branch))
        case AtVersion(version):
            return open_snapshot(location, OnBranch(named.branch, version))
        case _:
            place = branch_location(location, named.branch)
            return open_snapshot(place, travel, main=location)


def _time_travel(context: tuple[Any, ...]) -> Reference | None:
    """Parse `VERSION AS OF` or `TIMESTAMP AS OF`, which Spark versions pass in different ways."""
    if not context:
        return None
    asked = context[0]
    if isinstance(asked, str):
        return _version(asked)
    if isinstance(asked, int):
        return AsOf(asked * 1000)
    if not hasattr(asked, "timeTravel") or "TableContext" not in asked.getClass().getName():
        return None
    travel = asked.timeTravel()
    if not travel.isPresent():
        return None
    if "AsOfVersion" in travel.get().getClass().getName():
        return _version(travel.get().version())
    return AsOf(travel.get().micros() * 1000)


def _is_for_writing(context: tuple[Any, ...]) -> bool:
    """Whether a table is loaded for writing, in which case it may not exist yet."""
    if not context or isinstance(context[0], str | int):
        return False
    asked = context[0]
    privileges = asked.writePrivileges() if hasattr(asked, "writePrivileges") else asked
    return not privileges.isEmpty()


def _version(text: str) -> Reference:
    return AtVersion(int(text)) if text.isdigit() else AtTag(text)
