"""The session catalog of Spark: which of its tables are Lance tables, and where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError

from lancelake.errors import UnsupportedError
from lancelake.spark.jvm.compiled import driver_class, driver_object
from lancelake.spark.jvm.gateway import Gateway, guarded
from lancelake.spark.jvm.plan_calls import remembered

SESSION_CATALOG = "spark_catalog"
_SOURCE = "SessionTables"
_CATALOG = "org.apache.spark.sql.catalyst.catalog"
_SETTING = f"spark.sql.catalog.{SESSION_CATALOG}"
_BUILT_IN = "builtin"
_PROVIDER = "lance"


@dataclass(frozen=True, slots=True)
class SessionRegistry:
    """Names of tables in the session catalog, which Spark or Hive stores."""

    gateway: Gateway

    def location(self, database: str, name: str) -> str | None:
        """Return the location of a Lance table; None for other tables and unknown names."""
        found = self._java.location(self._registry, database, name)
        return None if found is None else str(found)

    def is_taken(self, database: str, name: str) -> bool:
        """Whether a table of any format, or a view, has this name."""
        return self._java.registered(self._registry, database, name) is not None

    def is_external(self, database: str, name: str) -> bool:
        """Whether dropping the table keeps its files."""
        found = self._java.registered(self._registry, database, name)
        return found is not None and str(found.tableType().name()) == "EXTERNAL"

    def default_location(self, database: str, name: str) -> str:
        """Return the location of a new table without LOCATION; the database must exist."""
        return str(self._registry.defaultTablePath(self._ident(database, name)).toString())

    def names(self, database: str) -> list[str]:
        """List the Lance tables of a database, sorted."""
        found = self._registry.listTables(database)
        every = [str(found.apply(position).table()) for position in range(found.length())]
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

        table = guarded(self.gateway, build, "entry of the session catalog")
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
        """Return the static methods of the compiled class."""
        return _Static(self.gateway)

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
        make = max(cls.getConstructors(), key=lambda made: made.getParameterCount())
        others = [
            getattr(defaults, f"{method}$default${position}")()
            for position in range(len(given) + 1, make.getParameterCount() + 1)
        ]
        every = self.gateway.array(self.gateway.cls("java.lang.Object"), [*given, *others])
        return make.newInstance(every)


@dataclass(frozen=True, slots=True)
class _Static:
    """Static methods of the compiled class, which Py4J cannot name."""

    gateway: Gateway

    def location(self, registry: Any, database: str, name: str) -> Any:
        return self._call("location", registry, database, name)

    def registered(self, registry: Any, database: str, name: str) -> Any:
        return self._call("registered", registry, database, name)

    def _call(self, method: str, *arguments: Any) -> Any:
        def find() -> Any:
            every = driver_class(self.gateway, _SOURCE).getMethods()
            return next(found for found in every if found.getName() == method)

        objects = self.gateway.array(self.gateway.cls("java.lang.Object"), arguments)
        return self.gateway.once_per_jvm(f"{_SOURCE}.{method}", find).invoke(None, objects)


def has_own_catalog(gateway: Gateway) -> bool:
    """Whether the session catalog is Spark's own, and not one that is configured."""
    return gateway.conf(_SETTING, _BUILT_IN) == _BUILT_IN


def take_session_catalog(gateway: Gateway, ours: Any) -> None:
    """Let `ours` handle the Lance tables of Spark's own session catalog."""
    if not has_own_catalog(gateway):
        return
    try:
        manager = gateway.session_state().catalogManager()
        field = manager.getClass().getDeclaredField("defaultSessionCatalog")
        field.setAccessible(True)
        current = field.get(manager)
        if current.getClass().getName() != f"lancelake.{_SOURCE}":
            registry, known = gateway.session_state().catalog(), remembered(gateway, ours)
            field.set(manager, driver_object(gateway, _SOURCE, current, known, registry))
    except Py4JError as error:
        problem = f"Spark {gateway.spark.version} does not accept a session catalog: {error}"
        raise UnsupportedError(problem, spark=gateway.spark.version) from error
