"""CREATE, ALTER, RENAME and REPLACE of catalog tables."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from lancelake.errors import NotFoundError, UnsupportedError
from lancelake.spark.catalog.alter import altered
from lancelake.spark.catalog.procedures import procedure_named, procedure_names
from lancelake.spark.catalog.table_names import table_named
from lancelake.spark.catalog.warehouse import Directory
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.maintenance.procedures import add_maintenance_procedures
from lancelake.spark.maintenance.wal_procedures import add_wal_procedures
from lancelake.spark.planning.catalog_proxy import CatalogProxy
from lancelake.spark.planning.procedure import LanceProcedure
from lancelake.spark.planning.staged_table import StagedTable, TableDefinition
from lancelake.spark.planning.table_change import changes_of, namespace_change
from lancelake.spark.planning.writable_table import WritableTable
from lancelake.spark.search.procedures import add_search_procedures
from lancelake.spark.writing.write_plan import SaveMode
from lancelake.storage.location import Location
from lancelake.suggest import suggestion

_SYSTEM = "system"

add_maintenance_procedures()
add_search_procedures()
add_wal_procedures()


class TableChanges(CatalogProxy):
    """The methods of a catalog that change its tables."""

    directory: Directory

    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def loadTable(self, ident: Any, *context: Any) -> Any: ...

    @abstractmethod
    def location_of(self, ident: Any) -> Location:
        """Return the location of a table."""

    @abstractmethod
    def definition(self, ident: Any, details: tuple[Any, ...]) -> TableDefinition:
        """Parse the definition of a new table."""

    def createTable(self, ident: Any, *details: Any) -> Any:
        definition = self.definition(ident, details)
        self.ensure_free(ident)
        snapshot = definition.created(SaveMode.ERROR)
        return WritableTable(self.gateway, snapshot, self._full(ident))

    def createTableLike(self, ident: Any, info: Any, source: Any) -> Any:  # noqa: ARG002
        return self.createTable(ident, info)

    def stageCreate(self, ident: Any, *details: Any) -> Any:
        definition = self.definition(ident, details)
        self.ensure_free(ident)
        return StagedTable(self.gateway, definition, SaveMode.ERROR, self._full(ident))

    def stageReplace(self, ident: Any, *details: Any) -> Any:
        if not self.directory.has_table(self.location_of(ident)):
            raise self.no_such_table(ident)
        return self.stageCreateOrReplace(ident, *details)

    def stageCreateOrReplace(self, ident: Any, *details: Any) -> Any:
        definition = self.definition(ident, details)
        return StagedTable(self.gateway, definition, SaveMode.OVERWRITE, self._full(ident))

    def supportedCustomMetrics(self) -> Any:
        return self.gateway.array(self.gateway.connector("metric.CustomMetric"), [])

    def alterTable(self, ident: Any, changes: Any) -> Any:
        table = self.loadTable(ident)
        if not isinstance(table, WritableTable):
            raise UnsupportedError(f"{self._full(ident)} cannot be altered: it is not a table")
        every = [found for change in changes for found in changes_of(change, self.gateway.spark)]
        snapshot = altered(table.newest(), every, SparkEngine(self.gateway.spark))
        return WritableTable(self.gateway, snapshot, self._full(ident))

    def renameTable(self, old: Any, new: Any) -> None:
        new = self._relative(new)
        source, target = self.location_of(old), self.location_of(new)
        if not self.directory.has_table(source):
            raise self.no_such_table(old)
        self.ensure_free(new)
        before = (tuple(old.namespace()), old.name())
        external = self.directory.external(*before)
        if external is None:
            self.directory.rename_table(source, target)
            return
        self.directory.add_external(tuple(new.namespace()), new.name(), external)
        self.directory.forget_external(*before)

    def _relative(self, ident: Any) -> Any:
        """Return a new name without the catalog's name, which Spark leaves in it."""
        first, *rest = tuple(ident.namespace()) or ("",)
        if first != self.name() or self.directory.has_namespace((first,)):
            return ident
        make = self.gateway.connector("catalog.Identifier")
        return make.of(self.gateway.strings(rest), ident.name())

    def alterNamespace(self, namespace: Any, changes: Any) -> None:
        found = [namespace_change(change) for change in changes]
        self.directory.alter_namespace(tuple(namespace), dict(found))

    def listProcedures(self, namespace: Any) -> Any:
        make = self.gateway.connector("catalog.Identifier")
        home = self.gateway.strings([_SYSTEM])
        names = procedure_names() if tuple(namespace) == (_SYSTEM,) else []
        return self.gateway.array(make, [make.of(home, name) for name in names])

    def loadProcedure(self, ident: Any) -> Any:
        found = procedure_named(ident.name())
        if tuple(ident.namespace()) != (_SYSTEM,) or found is None:
            raise NotFoundError(
                f"procedure {self._full(ident)} does not exist",
                action=suggestion(ident.name(), procedure_names(), "procedures"),
            )
        spark, catalog = self.gateway.spark, self.name()
        return LanceProcedure(self.gateway, found, lambda name: table_named(spark, name, catalog))

    def ensure_free(self, ident: Any) -> None:
        """Raise an exception if the name of a new table is taken."""
        if self.directory.has_table(self.location_of(ident)):
            raise self.table_exists(ident)

    def _full(self, ident: Any) -> str:
        return f"{self.name()}.{ident.toString()}"
