"""Tables of a session, and relations over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from lancelake.spark.jvm.catalyst import remember_answers
from lancelake.spark.jvm.gateway import Gateway, guard

_CATALOG = "org.apache.spark.sql.catalyst.catalog"
_PROVIDER = "lance"


@dataclass(frozen=True, slots=True)
class SessionRegistry:
    """Names of tables in the session catalog, which Spark or Hive stores."""

    gateway: Gateway

    def location(self, database: str, name: str) -> str | None:
        """Return the location of a Lance table; None for other tables and unknown names."""
        uri = self._java.location(self._registry, database, name)
        return None if uri is None else str(uri)

    def is_taken(self, database: str, name: str) -> bool:
        """Whether a table of any format, or a view, has this name."""
        return self._java.registered(self._registry, database, name) is not None

    def is_external(self, database: str, name: str) -> bool:
        """Whether dropping the table keeps its files."""
        entry = self._java.registered(self._registry, database, name)
        return entry is not None and str(entry.tableType().name()) == "EXTERNAL"

    def default_location(self, database: str, name: str) -> str:
        """Return the location of a new table without LOCATION; the database must exist."""
        return str(self._registry.defaultTablePath(self._ident(database, name)).toString())

    def names(self, database: str) -> list[str]:
        """List the Lance tables of a database, sorted."""
        names = self._registry.listTables(database)
        every = [str(names.apply(position).table()) for position in range(names.length())]
        return sorted(name for name in every if self.location(database, name) is not None)

    def add(self, database: str, name: str, uri: str, *, is_external: bool) -> None:
        """Register a table; its columns are those of the table itself, so none are stored."""

        def build() -> Any:
            kinds = self.gateway.cls(f"{_CATALOG}.CatalogTableType")
            kind = kinds.EXTERNAL() if is_external else kinds.MANAGED()
            # A path is encoded by Hadoop, as Spark does with the locations of its tables.
            place = self.gateway.cls("org.apache.hadoop.fs.Path")(uri).toUri()
            empty = self._companion("CatalogStorageFormat").empty()
            storage = self._object("CatalogStorageFormat", empty, "copy", self._some(place))
            columns = self.gateway.cls("org.apache.spark.sql.types.StructType")()
            given = (self._ident(database, name), kind, storage, columns, self._some(_PROVIDER))
            companion = self._companion("CatalogTable")
            return self._object("CatalogTable", companion, "$lessinit$greater", *given)

        table = guard(self.gateway, build, "entry of the session catalog")
        # The location contains files already, which Spark would refuse for its own tables.
        self._registry.createTable(table, False, False)

    def remove(self, database: str, name: str) -> None:
        """Remove a name; Spark deletes the folder of a table without LOCATION."""
        self._registry.dropTable(self._ident(database, name), True, False)

    def rename(self, before: tuple[str, str], after: tuple[str, str]) -> None:
        """Change the name of a table; Spark moves the folder of a table without LOCATION."""
        self._registry.renameTable(self._ident(*before), self._ident(*after))

    @property
    def _java(self) -> Any:
        return self.gateway.cls("lancelake.LanceSessionCatalog")

    @property
    def _registry(self) -> Any:
        return self.gateway.session_state().catalog()

    def _ident(self, database: str, name: str) -> Any:
        make = self.gateway.cls("org.apache.spark.sql.catalyst.TableIdentifier")
        return make(name, self._some(database))

    def _some(self, value: Any) -> Any:
        return self.gateway.member("scala.Option", "apply")(value)

    def _companion(self, name: str) -> Any:
        return getattr(self.gateway.cls(f"{_CATALOG}.{name}$"), "MODULE$")

    def _object(self, name: str, defaults: Any, method: str, *given: Any) -> Any:
        """Create a Scala object from its first arguments; the others are defaults of a method."""
        cls = self.gateway.member("java.lang.Class", "forName")(f"{_CATALOG}.{name}")
        make = max(cls.getConstructors(), key=lambda constructor: constructor.getParameterCount())
        others = [
            getattr(defaults, f"{method}$default${position}")()
            for position in range(len(given) + 1, make.getParameterCount() + 1)
        ]
        every = self.gateway.array(self.gateway.cls("java.lang.Object"), [*given, *others])
        return make.newInstance(every)


_RELATION = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation"
_DATASET = "org.apache.spark.sql.classic.Dataset"


def relation_over(gateway: Gateway, table: Any, given: Mapping[str, str] | None = None) -> Any:
    """Return a table as a plan; the options are passed to its scans."""
    none = gateway.none()
    options = gateway.options(given or {})
    create = gateway.member(_RELATION, "create")
    return guard(
        gateway,
        lambda: create(remember_answers(gateway, table, table.facts()), none, none, options, none),
        "relation over a table",
    )


def data_frame(gateway: Gateway, table: Any, given: Mapping[str, str] | None = None) -> DataFrame:
    """Return the rows of a table as a DataFrame; the options are passed to its scans."""

    def build() -> Any:
        relation = relation_over(gateway, table, given)
        return gateway.member(_DATASET, "ofRows")(gateway.spark._jsparkSession, relation)

    return DataFrame(guard(gateway, build, "relation over a table"), gateway.spark)
