"""Defaults of Spark's catalog interfaces, and the exceptions that Spark expects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from py4j.protocol import Py4JJavaError

from lancelake.spark.jvm.failures import thrown
from lancelake.spark.jvm.proxy import Proxy

_ANALYSIS = "org.apache.spark.sql.catalyst.analysis"


class CatalogProxy(Proxy, ABC):
    """Default implementations of catalog methods."""

    def initialize(self, name: str, options: Any) -> None:
        """Do nothing: the catalog is fully initialised."""

    def defaultNamespace(self) -> Any:
        return self.gateway.strings([])

    def capabilities(self) -> Any:
        return self.gateway.set([])

    def tableStateOptionKeys(self) -> Any:
        return self.gateway.set([])

    def changelogStateOptionKeys(self) -> Any:
        return self.gateway.set([])

    def useNullableQuerySchema(self) -> bool:
        return True

    def invalidateTable(self, ident: Any) -> None:
        """Do nothing: tables are not cached, every load opens the newest version."""

    def listTableSummaries(self, namespace: Any) -> Any:
        make = self.gateway.connector("catalog.TableSummary")
        found = [make.of(ident, "MANAGED") for ident in self.listTables(namespace)]
        return self.gateway.array(make, found)

    @abstractmethod
    def listTables(self, namespace: Any) -> Any: ...

    def purgeTable(self, ident: Any) -> bool:
        return self.dropTable(ident)

    @abstractmethod
    def dropTable(self, ident: Any) -> bool: ...

    def no_such_table(self, ident: Any) -> Py4JJavaError:
        """Return the exception for a table that does not exist."""
        return thrown(self.gateway.cls(f"{_ANALYSIS}.NoSuchTableException")(ident))

    def table_exists(self, ident: Any) -> Py4JJavaError:
        """Return the exception for a table that already exists."""
        return thrown(self.gateway.cls(f"{_ANALYSIS}.TableAlreadyExistsException")(ident))

    def no_such_namespace(self, namespace: Any) -> Py4JJavaError:
        """Return the exception for a namespace that does not exist."""
        make = self.gateway.cls(f"{_ANALYSIS}.NoSuchNamespaceException")
        return thrown(make(self.gateway.strings(list(namespace))))

    def namespace_exists(self, namespace: Any) -> Py4JJavaError:
        """Return the exception for a namespace that already exists."""
        make = self.gateway.cls(f"{_ANALYSIS}.NamespaceAlreadyExistsException")
        return thrown(make(self.gateway.strings(list(namespace))))
